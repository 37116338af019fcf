// Evaluates published cases of other tools and figures of real chips, and says how far off we are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/validation.h"

namespace foretoken {

// One number of a case: its cycles, the reads of a tensor at a level, the energy of a level.
struct AcceleratorFigure {
  std::string case_id, figure;
  double expected = 0, predicted = 0;
};

// A kind of file: whether a document is one, and the figures of its cases.
struct AcceleratorCaseKind {
  std::string_view name;
  bool (*recognises)(const JsonView& document);
  std::vector<AcceleratorFigure> (*figures)(const JsonView& document);
};

// Cycles and energy, and every count of the traffic. Where versions of the tool differ, the later one's rule is used,
// unless only the older one gives the figure.
std::vector<AcceleratorFigure> loop_nest_figures(const JsonView& document);

struct AcceleratorValidationRequest {
  std::filesystem::path data;        // a file of cases, or a folder of them
  std::vector<std::string> cases;    // only these; empty = all
  std::vector<std::string> figures;  // only those whose name holds one of these; empty = all
  std::string group_by;              // file (as when empty), case, figure
};

struct ScoredFigure {
  std::string_view file, group;
  const AcceleratorFigure* figure = nullptr;
};
using ScoredFigureSink = std::function<void(const ScoredFigure&)>;

// A figure of zero has no percentage: it counts as a row only through a note when it is predicted as something else.
// Another note says how many figures are met exactly.
Validation validate_accelerator(const AcceleratorValidationRequest& request, const ScoredFigureSink& sink = {});

}  // namespace foretoken
