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
  std::string why_not;  // where nothing of the case can be predicted: the reason, and no figure
};

// A file of cases, and the folder of what ships about accelerators (data/accelerators), which chips are read from.
struct AcceleratorCaseFile {
  std::filesystem::path path;
  const JsonView* document = nullptr;  // null for a table
  std::filesystem::path shipped;
};

// Kinds of files: every figure of every case.
using CaseFigures = std::vector<AcceleratorFigure> (*)(const AcceleratorCaseFile& file);

// Timeloop: cycles, energy, and every count of the traffic, by the rules of version 3.0.3, which made the cases.
std::vector<AcceleratorFigure> loop_nest_figures(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> sparse_figures(const AcceleratorCaseFile& file);  // Sparseloop
std::vector<AcceleratorFigure> scalesim_figures_of(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> dataflow_figures(const AcceleratorCaseFile& file);  // MAESTRO
// Real chips: Eyeriss by layer, TPU v1 by workload, TPU v3 by program; NVDLA as its vendor sizes it.
std::vector<AcceleratorFigure> eyeriss_figures(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> tpu_v1_figures(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> tpu_v3_figures(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> nvdla_figures(const AcceleratorCaseFile& file);
std::vector<AcceleratorFigure> prim_figures(const AcceleratorCaseFile& file);  // UPMEM by phase of a benchmark

struct AcceleratorValidationRequest {
  std::filesystem::path data;        // a file of cases, or a folder of them
  std::filesystem::path shipped;     // data/accelerators
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
