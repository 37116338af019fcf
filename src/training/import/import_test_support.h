// What tests of configuration files share.
#pragma once

#include <string_view>

#include "base/error.h"
#include "training/import/import_config.h"

namespace foretoken::import_config_test {

inline ImportedTraining import(std::string_view text) {
  return parse_training_config(text, "config");
}

inline InputProblem complaint(std::string_view text) {
  try {
    import(text);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

}  // namespace foretoken::import_config_test
