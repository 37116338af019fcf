// Results of long work that any number of threads, processes and machines share: each piece of work is done by one of
// them, and what was done before a kill is not done again. Kept in an SQLite file or in a PostgreSQL database.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "plan/store/store_backend.h"

namespace foretoken {

// How long others respect a claim that its owner has stopped renewing. An owner that ended on the same machine is
// noticed at once.
struct ClaimTimes {
  double lease_s = 60;
  double renewal_s = 15;
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
