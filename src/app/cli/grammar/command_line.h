// Runs one command line: parses, calls, prints. In-process, so that tests can call it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/cli/grammar/command.h"

namespace foretoken {

// One command's answer, for those who print nothing: the suite, the web page, Python. InputError for wrong input.
Answer answer_command(const std::vector<std::string>& arguments, const Library& library);

// The question that a command line asks (question.h), whether it is complete or not.
Json spec_of_line(const std::vector<std::string>& arguments);

// A command with all its flags and subcommands.
CommandDeclaration declaration_of(const CommandKind& kind);

// Returns the exit status: 0; 3 where the answer is that nothing fits or serves; 2 for wrong input; 1 for a defect of
// ours.
int run_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace foretoken
