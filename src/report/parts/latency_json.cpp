#include "report/parts/latency_json.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {

void set_latencies(Json& json, std::string_view name, const LatencySummary& summary,
                   const std::vector<double>& percentiles) {
  json.set(fmt::format("mean_{}_ms", name), summary.mean_ms);
  json.set(fmt::format("median_{}_ms", name), summary.median_ms);
  json.set(fmt::format("std_{}_ms", name), summary.deviation_ms);
  for (size_t i = 0; i < percentiles.size(); ++i) {
    json.set(fmt::format("p{}_{}_ms", number_text(percentiles[i]), name), summary.percentiles_ms[i]);
  }
}

void clear_latencies(Json& json, std::string_view name) {
  const std::string ending = fmt::format("_{}_ms", name);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.members()) {
    if (key.ends_with(ending)) keys.push_back(key);
  }
  for (const std::string& key : keys) json.set(key, Json());
}

}  // namespace foretoken
