#include "report/drawing/html_page.h"

#include <fmt/format.h>

#include "report/drawing/svg.h"

namespace foretoken {
namespace {

// Figures are drawn on white: in the dark their lightness is turned around, on paper it is not.
constexpr std::string_view page_style =
    ":root{color-scheme:light dark;--ground:#fff;--text:#1c2430;--soft:#5b6675;--line:#dfe4ea;--panel:#f5f7fa}"
    "@media(prefers-color-scheme:dark){:root{--ground:#12161c;--text:#e6eaf0;--soft:#9aa6b5;--line:#2c3440;"
    "--panel:#1a2029}}"
    "body{font:16px/1.5 system-ui,sans-serif;background:var(--ground);color:var(--text);margin:0 auto;max-width:62rem;"
    "padding:1.5rem 1rem 4rem}"
    "h1{font-size:1.3rem;font-weight:600;color:var(--soft);margin:0 0 1rem}"
    "h2{font-size:1.1rem;margin:2.5rem 0 .75rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}"
    ".answer{font-size:1.35rem;line-height:1.4;margin:0 0 1.5rem}"
    "figure{margin:0 0 1rem}figure svg{max-width:100%;height:auto;background:#fff;border-radius:4px}"
    "@media screen and (prefers-color-scheme:dark){figure svg{filter:invert(.91) hue-rotate(180deg)}}"
    "@media(max-width:40rem){figure svg{max-width:none;width:40rem}}"
    "figcaption{color:var(--soft);font-size:.9rem}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.95rem}"
    "th,td{text-align:right;padding:.3rem .75rem;border-bottom:1px solid var(--line)}"
    "th.words,td.words{text-align:left}th:first-child,td:first-child{text-align:left;padding-left:0}thead "
    "th{color:var(--soft);font-weight:500}"
    "tbody th{font-weight:400;min-width:8rem}"
    "pre{overflow-x:auto;background:var(--panel);padding:.75rem 1rem;border-radius:4px;font-size:.85rem}"
    "@media "
    "print{:root{--ground:#fff;--text:#000;--soft:#444;--line:#bbb;--panel:#f5f7fa}body{max-width:none;padding:0}"
    "h2{break-after:avoid}figure,tr,pre{break-inside:avoid}pre{white-space:pre-wrap}.scroll{overflow:visible}}";

// Text for a page, line ends kept: svg_escaped() takes them for control characters.
std::string html_lines(std::string_view text) {
  std::string result;
  while (true) {
    const size_t end = text.find('\n');
    result += svg_escaped(text.substr(0, end));
    if (end == std::string_view::npos) return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

// Whether the cells of a column begin with no digit: words are read from the left, numbers compared at the right.
bool has_words(const std::vector<std::vector<std::string>>& rows, size_t column) {
  bool found = false;
  for (const std::vector<std::string>& row : rows) {
    if (column >= row.size() || row[column].empty()) continue;
    const char first = row[column].front();
    if ((first >= '0' && first <= '9') || first == '-' || first == '~') return false;
    found = true;
  }
  return found;
}

}  // namespace

HtmlPage::HtmlPage(std::string_view title) : title_(svg_escaped(title)) {}

void HtmlPage::sentence(std::string_view text) {
  body_ += fmt::format("<p class=\"answer\">{}</p>\n", svg_escaped(text));
}

void HtmlPage::heading(std::string_view text) {
  body_ += fmt::format("<h2>{}</h2>\n", svg_escaped(text));
}

void HtmlPage::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", svg_escaped(text));
}

void HtmlPage::figure(const std::string& svg, std::string_view caption) {
  body_ +=
      fmt::format("<figure>\n<div class=\"scroll\" tabindex=\"0\">{}</div><figcaption>{}</figcaption>\n</figure>\n",
                  svg, svg_escaped(caption));
}

void HtmlPage::table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string_view> marks;  // of the columns
  for (size_t i = 0; i < titles.size(); ++i) marks.push_back(has_words(rows, i) ? " class=\"words\"" : "");
  body_ += "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (size_t i = 0; i < titles.size(); ++i) {
    body_ += fmt::format("<th scope=\"col\"{}>{}</th>", marks[i], svg_escaped(titles[i]));
  }
  body_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    body_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      body_ += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", svg_escaped(row[i]))
                      : fmt::format("<td{}>{}</td>", i < marks.size() ? marks[i] : "", svg_escaped(row[i]));
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void HtmlPage::preformatted(std::string_view text) {
  body_ += fmt::format("<pre tabindex=\"0\">{}</pre>\n", html_lines(text));
}

std::string HtmlPage::finish() const {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}</main>\n</body>\n</html>\n",
      title_, page_style, body_);
}

}  // namespace foretoken
