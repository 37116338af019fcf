// Shell commands that start an engine: which engine, and the words behind its program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compose/serving_engine.h"

namespace foretoken {

struct LaunchWords {
  LaunchStyle style = LaunchStyle::vllm;
  std::vector<std::string> arguments;    // behind the program's name
  std::vector<std::string> environment;  // NAME=VALUE
  std::string version;                   // of the engine, where the tag of its image says it
};

// The engine that a command starts; nothing where it starts none. Wrappers (docker run, bash -c) are looked through.
std::optional<LaunchWords> find_engine(const std::vector<std::string>& words);

// The same server on another node than its first: its line says so.
bool is_on_other_node(const LaunchWords& words);

// The commands of a shell script, each as its words, without redirections and comments. InputError for an open quote.
std::vector<std::vector<std::string>> shell_commands(std::string_view script, const std::string& source);

// An image that starts vLLM by itself: flags alone follow it.
bool is_vllm_image(std::string_view image);
// The release of the engine that the tag of its image names ("0.10.2"). Empty for images of others, whose tags count
// something else, and for tags that name none: "latest", "nightly", a digest.
std::string image_version(std::string_view image, LaunchStyle style);

}  // namespace foretoken
