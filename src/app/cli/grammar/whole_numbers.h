// Several whole numbers in one value of a flag: 512x4096x4096.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace foretoken {

// The numbers of `text`, which stand between `separator`s. InputError (about `flag`, with `expected`) for anything else
// and for numbers that are not allowed.
std::vector<int64_t> whole_numbers(const std::string& flag, const std::string& text, std::string_view separator,
                                   Range<int64_t> allowed, const std::string& expected);

}  // namespace foretoken
