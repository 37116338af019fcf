// What a page tells of how far to trust a prediction, from the facts that ship.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "library/library.h"
#include "report/page/trust_panel.h"

namespace foretoken {

// `layers` as data/accuracy names them, lowest first; `devices` that the prediction is about. What its times rest on is
// left to the caller.
Trust page_trust(const Library& library, std::vector<std::string_view> layers, std::span<const Device> devices);

}  // namespace foretoken
