// What requests of a common use look like, by public statistics: for questions that name a use instead of lengths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace foretoken {

struct TrafficUse {
  std::string name;                             // "chat"
  std::string summary;                          // "conversations with a person"
  int64_t input_tokens = 1, output_tokens = 1;  // means; of the prompt, what follows the shared prefix
  double sigma = 0;                             // deviation of their logarithms
  int64_t prefix_tokens = 0, prefixes = 1;      // shared with other requests: one of so many
  bool is_code = false;                         // else texts of many kinds
  std::string source;
  std::string slo;  // default limits: "ttft<450ms@p99,tpot<40ms@p99"
  std::string slo_source;
};

inline constexpr const char* usual_traffic_use = "chat";

// Those of `traffic/uses.json` in a folder of facts, in the file's order. InputError names what is wrong in it.
std::vector<TrafficUse> read_traffic_uses(const std::filesystem::path& data);
// InputError names the nearest one.
TrafficUse traffic_use(const std::filesystem::path& data, const std::string& name);

}  // namespace foretoken
