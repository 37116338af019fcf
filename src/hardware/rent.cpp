#include "hardware/rent.h"

#include "base/json.h"
#include "hardware/data_age.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr JsonLimits limits{.max_bytes = size_t{1} << 20};

Rents rents_in(const JsonView& file) {
  file.allow_only({"about", "as_of", "usd_per_hour"});
  constexpr FactBounds usd{"USD/h", 0.001, 1000};
  Rents rents;
  for (const auto& [device, entry] : file.at("usd_per_hour").members()) rents.emplace(device, read_fact(entry, usd));
  const std::optional<JsonView> dates = file.find("as_of");
  if (!dates) return rents;
  for (const auto& [device, date] : dates->members()) {
    if (!rents.contains(device)) date.fail("a device with a price in usd_per_hour");
    if (!months_between(date.string(), "1970-01")) date.fail("a month or a day: 2026-03 or 2026-03-14");
  }
  return rents;
}

}  // namespace

Rents read_rents(const std::filesystem::path& path) {
  const Json document = read_json_file(path, limits);
  return rents_in(JsonView(document, path.string()));
}

Rents parse_rents(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, limits);
  return rents_in(JsonView(document, source));
}

MaybeFact<double> find_rent(const Rents& rents, const std::string& device) {
  const auto found = rents.find(device);
  return found == rents.end() ? std::nullopt : MaybeFact<double>(found->second);
}

}  // namespace foretoken
