// What --tier says wherever it appears.
#pragma once

namespace foretoken {

inline constexpr const char* tier_help =
    "What kernel times rest on, as far as there is such a thing for a kernel, else the roofline";

}  // namespace foretoken
