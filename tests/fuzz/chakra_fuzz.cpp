// Any bytes are either a Chakra trace that is written as it was read, and replays or is refused, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "network/replay/chakra_workload.h"
#include "network/replay/replay.h"

namespace foretoken::chakra_fuzz_test {

// Two ranks with the same trace, so that collectives meet.
void replay_twice(const std::string& content) {
  const ReplayWorkload workload = chakra_workload(
      [&](int64_t rank) { return ChakraReader(content, "rank " + std::to_string(rank)); }, {.ranks = 2});
  const auto network = undisturbed_network([](const NetworkCall& call) { return microseconds(call.bytes * 1e-6); });
  const ReplayResult result = replay(workload, *network);
  for (const RankTimes& rank : result.ranks) {
    promise(rank.compute + rank.exposed_communication + rank.memory + rank.waiting + rank.host + rank.idle ==
                result.makespan,
            "the times of a rank add up");
  }
}

}  // namespace foretoken::chakra_fuzz_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  using chakra_fuzz_test::replay_twice;
  const std::string content(as_text(data, size));
  try {
    const std::string written = chakra_text(parse_chakra(content, "input"));
    promise(chakra_text(parse_chakra(written, "written")) == written, "what was written reads back");
    replay_twice(content);
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
