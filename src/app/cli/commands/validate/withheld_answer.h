// The answer of `validate --without`.
#pragma once

#include <functional>
#include <string>

#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/grammar/command.h"
#include "app/cli/output/progress.h"
#include "report/accuracy/withheld_report.h"

namespace foretoken {

inline Answer withheld_answer(const std::string& layer, const std::string& generation,
                              const std::function<Validation(Tier tier)>& validate) {
  const WithheldValidation table = validate_withheld(layer, generation, validate, show_progress);
  return {.text = withheld_text(table), .json = withheld_json(table), .failure = validation_failure(table.cross)};
}

}  // namespace foretoken
