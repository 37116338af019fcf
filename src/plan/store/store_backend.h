// Where results lie: what an SQLite file and a PostgreSQL database have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace foretoken {

struct StoreCounts {
  int64_t results = 0;
  int64_t claimed = 0;  // begun and not finished, whether or not somebody is still at it
  int64_t begun = 0;    // how often work was begun: more than results + claimed where work had to be done again
};

// What a look at some keys finds. Keys that are in neither part are held by somebody else: ask again later.
struct StoreClaim {
  std::vector<std::pair<size_t, std::string>> done;  // places of keys, in order, and their results
  std::optional<size_t> mine;  // the place of a key to be worked out by the caller, who then calls finish()
};

// Where results lie. One user at a time (ResultStore sees to that); any number of processes.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  // Claims one of the keys that are free, an early one, for `owner` and so many seconds. Tells of those that are done:
  // of all where none is free, else of some.
  virtual StoreClaim claim(std::span<const std::string> keys, const std::string& owner, double lease_s) = 0;
  virtual void finish(const std::string& key, const std::string& result) = 0;  // the first result stays
  // Claims that `owner` still has last so many seconds from now; 0 gives them back.
  virtual void renew(std::span<const std::string> keys, const std::string& owner, double lease_s) = 0;
  virtual StoreCounts counts() = 0;  // of the question
};

}  // namespace foretoken
