// How what is said below a command's flags is laid out: prose, and examples to copy.
#pragma once

#include <string>

namespace foretoken {

// Lines that begin with a space are examples: too long ones go on in a further line, as the shell reads it, and so do
// those whose text already has a deeper line of flags behind them. All others are prose, broken at spaces.
std::string laid_out_notes(const std::string& notes);

}  // namespace foretoken
