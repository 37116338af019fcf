// What --tier says wherever it appears.
#pragma once

namespace foretoken {

inline constexpr const char* tier_help =
    "Source of kernel times: measured (a sweep of this GPU), sibling (one of its generation), cross (other GPUs) or "
    "roofline. best picks the first one available for each kernel";

}  // namespace foretoken
