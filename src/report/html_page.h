// A report as one page without scripts or other files.
#pragma once

#include <string>
#include <string_view>

namespace foretoken {

// A title, a figure as SVG, and text that is shown as it stands.
std::string html_page(std::string_view title, const std::string& svg, const std::string& text);

}  // namespace foretoken
