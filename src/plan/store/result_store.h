// Results of long work in one SQLite file that any number of threads and processes share: each piece of work is done by
// one of them, and what was done before a kill is not done again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

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

// Safe to use from several threads. Errors: InputError for a file that is not a store, is damaged or cannot be opened;
// std::runtime_error where the disk or other processes do not let it write.
class ResultStore {
 public:
  // Creates the file if there is none. `question` names all that results depend on besides their keys: a file holds
  // results of any number of questions.
  ResultStore(const std::filesystem::path& file, const std::string& question, const ClaimTimes& times = {});
  // Gives back what was claimed and not finished.
  ~ResultStore();
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;

  enum class State : uint8_t {
    done,  // `result` is there
    mine,  // to be worked out by the caller, who then calls finish()
    held   // somebody else is at it: ask again later
  };
  struct Claim {
    State state = State::held;
    std::string result;
  };
  Claim claim(const std::string& key);
  // The first result of a key stays.
  void finish(const std::string& key, const std::string& result);

  StoreCounts counts();  // of the question
  // Of all questions in a file; nothing is created. InputError where there is no store.
  static StoreCounts counts_of(const std::filesystem::path& file);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace foretoken
