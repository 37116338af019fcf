// What the tests of this folder share: the catalogue, and tables of times that follow a law exactly.
#pragma once

#include <string>
#include <vector>

#include "hardware/catalogue.h"
#include "network/calibration/communication_rows.h"
#include "network/calibration/law.h"

namespace foretoken::test_support {

inline const HardwareCatalogue& catalogue() {
  static const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  return hardware;
}

inline CommunicationCall message(const std::string& law, const std::string& operation, int64_t ranks, double bytes) {
  return {.law = law, .operation = operation, .variant = "1.0 half", .ranks = ranks, .bytes = bytes};
}

inline CommunicationCall expert_call(const std::string& law, const std::string& operation, int64_t tokens) {
  return {.law = law,
          .operation = operation,
          .variant = "1.0",
          .ranks = 8,
          .expert = {.tokens = tokens, .hidden = 4096, .top_k = 8, .experts = 256, .processors = 20}};
}

inline std::vector<double> start_constants(const CommunicationLaw& law) {
  std::vector<double> values;
  for (const LawConstant& constant : law.constants()) values.push_back(constant.start);
  return values;
}

// All-reduces of 1 KiB to 256 MiB that take `launch` + 2(n-1) hops of 1 us + 1.4 times the wire time.
inline CommunicationRows made_up_rows(const std::vector<std::pair<std::string, double>>& launch_us_of_system,
                                      const SystemLibrary& systems) {
  CommunicationRows rows;
  for (const auto& [name, launch_us] : launch_us_of_system) {
    for (const int64_t ranks : {2, 4, 8}) {
      for (double bytes = 1024; bytes <= 256 * 1024 * 1024; bytes *= 4) {
        const CommunicationCall call = message("nccl", "all_gather", ranks, bytes);
        const double wire = message_wire_bytes(call, false) / systems.traits(name).link_rate;
        rows.rows.push_back({.file = "made up",
                             .row = rows.rows.size() + 1,
                             .system = name,
                             .group = name + "/all_gather",
                             .repetition = "0",
                             .call = call,
                             .device = name,
                             .seconds = 1e-6 * (launch_us + static_cast<double>(ranks - 1)) + 1.4 * wire});
      }
    }
  }
  return rows;
}

}  // namespace foretoken::test_support
