// Measured acceptance: mean tokens of a verification by model, method and number of drafts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/speculation/acceptance.h"

namespace foretoken {

// A CSV with columns model, draft_method, draft_tokens, mean_acceptance_length (accepted drafts + 1). Other columns
// (data set, with or without thinking) tell rows apart that are averaged here.
class AcceptanceTable {
 public:
  explicit AcceptanceTable(const std::filesystem::path& file);

  // Of this model (its name contains the row's, or the other way round; case and organisation do not matter).
  // InputError that lists the models measured with this method when there is none.
  Acceptance of_model(std::string_view model, std::string_view method, int64_t drafts) const;
  // The same, or nothing where this model was not measured with the method and so many drafts.
  std::optional<Acceptance> find(std::string_view model, std::string_view method, int64_t drafts) const;

 private:
  // Mean lengths by number of drafts.
  using Lengths = std::map<int64_t, double>;
  struct Row {
    std::string model, method;
    int64_t drafts = 0;
    double length = 0;
  };
  Lengths lengths(std::string_view model, std::string_view method) const;
  Acceptance acceptance(const Lengths& lengths, int64_t drafts) const;
  [[noreturn]] void refuse(std::string_view model, std::string_view method) const;

  std::string source_;
  std::vector<Row> rows_;
};

// Chances by position from mean lengths with 1, 2, ... `drafts` drafts: one more draft adds the chance that it is
// reached and accepted. Measured lengths scatter, so chances that would rise are levelled, and all are scaled until the
// mean with `drafts` drafts is the measured one. Where shorter drafts were not measured: one constant rate with that
// mean.
Acceptance acceptance_from_lengths(const std::map<int64_t, double>& lengths, int64_t drafts);

}  // namespace foretoken
