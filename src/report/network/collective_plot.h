// Bus bandwidth of a collective over its size, with the 90% interval.
#pragma once

#include <string>

#include "report/network/collective_report.h"

namespace foretoken {

// SVG text. InputError for fewer than two sizes, or a collective that moves no bytes: there is no line to draw.
std::string collective_plot(const CollectiveReport& report);

}  // namespace foretoken
