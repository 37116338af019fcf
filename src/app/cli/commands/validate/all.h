// `validate --all`: every layer on whatever measurements are at hand.
#pragma once

#include <filesystem>
#include <string>

#include "app/cli/grammar/command.h"

namespace foretoken {

struct ValidateAll {
  std::filesystem::path data;  // folder of measurements; empty = only those that ship
  int64_t serving_every = 20;
  std::filesystem::path history;  // to compare with and append to; empty = none
  std::string html;
  std::string date;  // of this run; empty = today
};

Answer validate_all(const ValidateAll& wanted, const Library& library);

}  // namespace foretoken
