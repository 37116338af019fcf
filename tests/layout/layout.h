// The rules of the source tree that neither compiler nor linker notices.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretoken::layout {

// Breaches of the rules below `root` (the folder that holds src/ and CMakeLists.txt), one line each, sorted by file:
//  - src/ holds the pipeline folders and no others, each with a README.md of at most 15 lines;
//  - an include between quotes names a file from src/ on, of its own folder or of one above it in the pipeline, and of
//    one that the folder's CMake target uses, directly or through others;
//  - headers leave heavy third-party headers to .cpp files;
//  - no two .cpp files of a folder have the same name in their unnamed namespaces (functions: the same parameters too),
//    since a first build compiles several at a time. Folders with a list.cpp, whose files stay apart, may;
//  - no two headers define a type of the same name in the same namespace: a program that holds both is undefined;
//  - only hardware/generation.cpp knows the names of instruction sets; others ask for a property of the generation;
//  - no engine is told by its name: its kind is asked (compose/serving_engine.h). Readers of measurements may;
//  - no text outside app/ names a flag: errors and sentences name the {field} (base/error.h). Files that write launch
//    lines of other programs may;
//  - logarithms, exponentials, powers and angles are those of base/portable_math.h: libm's differ between machines.
std::vector<std::string> breaches(const std::filesystem::path& root);

}  // namespace foretoken::layout
