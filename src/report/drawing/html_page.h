// One self-contained page: no scripts, no outside files, light and dark, readable without the figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void sentence(std::string_view text);  // the answer, first and large
  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // `svg` as finished by Svg; the caption says what it shows for those who cannot see it.
  void figure(const std::string& svg, std::string_view caption);
  // The first cell of each row names it.
  void table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows);
  void preformatted(std::string_view text);  // a command, or text for a terminal

  std::string finish() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace foretoken
