// A drawing as SVG text: one file without scripts or outside fonts, the same bytes on every machine.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace foretoken {

struct SvgPoint {
  double x = 0, y = 0;  // pixels from the upper left corner
};

struct SvgStyle {
  std::string_view stroke = "none";
  std::string_view fill = "none";
  double width = 1;       // of the stroke
  std::string_view dash;  // "6 4"; empty = a full line
  double opacity = 1;
};

enum class SvgAnchor { start, middle, end };

struct SvgTextStyle {
  double size = 12;
  SvgAnchor anchor = SvgAnchor::start;
  std::string_view fill = "#222222";
  bool bold = false;
  double rotation = 0;  // degrees, clockwise around the point
  bool halo = false;    // a white rim, for text over lines
};

// White background. `tooltip`, where given, shows when the pointer rests on a shape.
class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  void line(SvgPoint from, SvgPoint to, const SvgStyle& style);
  void polyline(std::span<const SvgPoint> points, const SvgStyle& style);
  void polygon(std::span<const SvgPoint> points, const SvgStyle& style, std::string_view tooltip = {});
  void rectangle(SvgPoint corner, double width, double height, const SvgStyle& style);
  void circle(SvgPoint centre, double radius, const SvgStyle& style, std::string_view tooltip = {});
  void text(SvgPoint at, std::string_view text, const SvgTextStyle& style);

  std::string finish() const;

 private:
  void shape(std::string element, const SvgStyle& style, std::string_view tooltip);
  std::string body_;
};

// Text for the inside of an element or an attribute: markup escaped, control characters and broken UTF-8 replaced.
std::string svg_escaped(std::string_view text);

// About how wide a text of this size is in pixels; real fonts differ by a tenth.
double svg_text_width(std::string_view text, double size);

}  // namespace foretoken
