#include "report/drawing/svg.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

// A tenth of a pixel; never "-0".
std::string pixels(double value) {
  const double tenths = std::round(value * 10);
  return tenths == 0 ? "0" : fmt::format("{:g}", tenths / 10);
}

std::string points_text(std::span<const SvgPoint> points) {
  std::string text;
  for (const SvgPoint& point : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", pixels(point.x), pixels(point.y));
  return text;
}

}  // namespace

std::string svg_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";  // U+FFFD
    } else if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += ' ';
    } else {
      out += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

double svg_text_width(std::string_view text, double size) {
  double characters = 0;
  for (const char c : text) characters += (c & 0xC0) == 0x80 ? 0 : 1;
  return 0.56 * size * characters;
}

Svg::Svg(double width, double height, std::string_view title) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      pixels(width), pixels(height), svg_escaped(title));
}

void Svg::shape(std::string element, const SvgStyle& style, std::string_view tooltip) {
  element += fmt::format(R"( stroke="{}" fill="{}")", style.stroke, style.fill);
  if (style.stroke != "none") element += fmt::format(" stroke-width=\"{}\"", pixels(style.width));
  if (!style.dash.empty()) element += fmt::format(" stroke-dasharray=\"{}\"", style.dash);
  if (style.opacity < 1) element += fmt::format(" opacity=\"{:g}\"", style.opacity);
  if (tooltip.empty()) {
    body_ += fmt::format("<{}/>\n", element);
  } else {
    const std::string name = element.substr(0, element.find(' '));
    body_ += fmt::format("<{}><title>{}</title></{}>\n", element, svg_escaped(tooltip), name);
  }
}

void Svg::line(SvgPoint from, SvgPoint to, const SvgStyle& style) {
  shape(fmt::format(R"(line x1="{}" y1="{}" x2="{}" y2="{}")", pixels(from.x), pixels(from.y), pixels(to.x),
                    pixels(to.y)),
        style, {});
}

void Svg::polyline(std::span<const SvgPoint> points, const SvgStyle& style) {
  shape(fmt::format("polyline points=\"{}\"", points_text(points)), style, {});
}

void Svg::polygon(std::span<const SvgPoint> points, const SvgStyle& style, std::string_view tooltip) {
  shape(fmt::format("polygon points=\"{}\"", points_text(points)), style, tooltip);
}

void Svg::rectangle(SvgPoint corner, double width, double height, const SvgStyle& style) {
  shape(fmt::format(R"(rect x="{}" y="{}" width="{}" height="{}")", pixels(corner.x), pixels(corner.y), pixels(width),
                    pixels(height)),
        style, {});
}

void Svg::circle(SvgPoint centre, double radius, const SvgStyle& style, std::string_view tooltip) {
  shape(fmt::format(R"(circle cx="{}" cy="{}" r="{}")", pixels(centre.x), pixels(centre.y), pixels(radius)), style,
        tooltip);
}

void Svg::text(SvgPoint at, std::string_view text, const SvgTextStyle& style) {
  constexpr std::string_view anchors[] = {"start", "middle", "end"};
  body_ += fmt::format(R"(<text x="{}" y="{}" font-size="{}" fill="{}")", pixels(at.x), pixels(at.y),
                       pixels(style.size), style.fill);
  if (style.anchor != SvgAnchor::start)
    body_ += fmt::format(" text-anchor=\"{}\"", anchors[static_cast<size_t>(style.anchor)]);
  if (style.bold) body_ += " font-weight=\"bold\"";
  if (style.halo) body_ += R"( stroke="white" stroke-width="3" paint-order="stroke")";
  if (style.rotation != 0) {
    body_ += fmt::format(" transform=\"rotate({} {} {})\"", pixels(style.rotation), pixels(at.x), pixels(at.y));
  }
  body_ += fmt::format(">{}</text>\n", svg_escaped(text));
}

std::string Svg::finish() const {
  return body_ + "</svg>\n";
}

}  // namespace foretoken
