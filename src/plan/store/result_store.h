// Results of long work that any number of threads, processes and machines share: each piece of work is done by one of
// them, and what was done before a kill is not done again. Kept in an SQLite file or in a PostgreSQL database.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace foretoken {

// How long others respect a claim that its owner has stopped renewing. An owner that ended on the same machine is
// noticed at once.
struct ClaimTimes {
  double lease_s = 60;
  double renewal_s = 15;
};

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

// Safe to use from several threads. Errors: InputError for what is not a store, is damaged or cannot be opened;
// std::runtime_error where the disk, the server or other processes do not let it write. Neither names a password.
class ResultStore {
 public:
  // `location` is a file, which is created if there is none, or postgresql://USER@HOST:PORT/DATABASE, in which tables
  // are. `question` names all that results depend on besides their keys: a store holds results of any number of
  // questions.
  ResultStore(const std::string& location, const std::string& question, const ClaimTimes& times = {});
  // Gives back what was claimed and not finished.
  ~ResultStore();
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;

  StoreClaim claim(std::span<const std::string> keys);  // as of a backend; each key once
  // The first result of a key stays.
  void finish(const std::string& key, const std::string& result);

  StoreCounts counts();  // of the question
  // Of all questions in a store; nothing is created. InputError where there is no store.
  static StoreCounts counts_of(const std::string& location);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace foretoken
