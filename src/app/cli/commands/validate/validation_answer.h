// What every layer of `validate` answers with.
#pragma once

#include <string>

#include "app/cli/command.h"
#include "report/validation_report.h"

namespace foretoken {

inline int validation_status(const Validation& validation) {
  return validation.overall.n > 0 ? 0 : answer_is_no;
}

// Text and JSON, and the exit status that says whether a row was scored.
inline Answer validation_answer(const Validation& validation, const std::string& layer) {
  return {.text = validation_text(validation),
          .json = validation_json(validation, layer),
          .exit_status = validation_status(validation)};
}

}  // namespace foretoken
