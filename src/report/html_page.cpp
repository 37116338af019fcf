#include "report/html_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/svg.h"

namespace foretoken {
namespace {

// Escaping replaces line ends, which a page shows as they are inside <pre>.
std::string escaped_lines(const std::string& text) {
  std::string escaped;
  size_t from = 0;
  while (from < text.size()) {
    const size_t end = std::min(text.find('\n', from), text.size());
    escaped += svg_escaped(std::string_view(text).substr(from, end - from)) + "\n";
    from = end + 1;
  }
  return escaped;
}

}  // namespace

std::string html_page(std::string_view title, const std::string& svg, const std::string& text) {
  const std::string shown = svg_escaped(title);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>body{{font-family:system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}}"
      "pre{{overflow-x:auto;background:#f5f7fa;padding:1rem}}svg{{max-width:100%;height:auto}}</style>\n"
      "</head>\n<body>\n<h1>{}</h1>\n{}\n<pre>{}</pre>\n</body>\n</html>\n",
      shown, shown, svg, escaped_lines(text));
}

}  // namespace foretoken
