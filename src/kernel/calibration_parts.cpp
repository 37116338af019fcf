#include "kernel/calibration_parts.h"

#include <cmath>

#include <fmt/format.h>

#include "base/random.h"

namespace foretoken {

size_t HalfWidths::bin(double seconds) {
  size_t bin = 0;
  while (bin + 1 < std::size(edges_us) && seconds * 1e6 >= edges_us[bin + 1]) ++bin;
  return bin;
}

Json half_widths_json(const HalfWidths& widths) {
  Json list = Json::array();
  for (const double width : widths.by_time) list.push(std::round(width * 1e4) / 1e4);
  return list;
}

HalfWidths half_widths_of(const JsonView& view) {
  const std::vector<JsonView> items = view.items();
  HalfWidths widths;
  if (items.size() != std::size(widths.by_time)) view.fail(fmt::format("{} numbers", std::size(widths.by_time)));
  for (size_t i = 0; i < items.size(); ++i) widths.by_time[i] = items[i].number({.least = 0, .most = 20});
  return widths;
}

Json calibration_header(const char* kind) {
  return Json::object({{"kind", kind}, {"version", calibration_version}});
}

void check_calibration_header(const JsonView& view, std::string_view kind) {
  const int64_t version = view.at("version").integer({.least = 1});
  if (version > calibration_version) {
    view.at("version").fail(fmt::format("at most {}: this file was made by a newer foretoken", calibration_version));
  }
  if (view.at("kind").string() != kind) view.at("kind").fail(std::string(kind));
}

std::string digest_of(const Json& file) {
  Json rest = Json::object();
  for (const auto& [key, value] : file.members()) {
    if (key != "self_check") rest.set(key, value);
  }
  return fmt::format("{:016x}", fnv1a(rest.dump(0)));
}

void verify_digest(const JsonView& file) {
  if (const std::optional<JsonView> digest = file.at("self_check").find("digest")) {
    if (digest->string() != digest_of(file.value()))
      digest->fail("the digest of the rest of this file: it is damaged or was edited");
  }
}

double rounded_percent(double percent) {
  return std::round(percent * 100) / 100;
}

Json percentages(const std::map<std::string, double>& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object.set(name, rounded_percent(value));
  return object;
}

std::map<std::string, double> percentages_of(const JsonView& view, const char* key) {
  std::map<std::string, double> values;
  if (const std::optional<JsonView> object = view.find(key)) {
    for (const auto& [name, value] : object->members()) values[name] = value.number({.least = 0});
  }
  return values;
}

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

std::vector<std::string> texts_of(const JsonView& view) {
  std::vector<std::string> texts;
  for (const JsonView& item : view.items()) texts.push_back(item.string());
  return texts;
}

}  // namespace foretoken
