// What every layer of `validate` answers with.
#pragma once

#include <string>

#include "app/cli/grammar/command.h"
#include "report/accuracy/validation_report.h"

namespace foretoken {

// Empty where a row was scored.
inline std::string validation_failure(const Validation& validation) {
  return validation.overall.n > 0 ? "" : "No row was scored.";
}

inline Answer validation_answer(const Validation& validation, const std::string& layer) {
  return {.text = validation_text(validation),
          .json = validation_json(validation, layer),
          .failure = validation_failure(validation)};
}

}  // namespace foretoken
