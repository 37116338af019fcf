// Timeloop's input files, any number of them in any order: each holds some of the sections, together one design.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/formats/accelergy_tables.h"
#include "accelerator/formats/jinja.h"
#include "accelerator/formats/timeloop_architecture.h"
#include "accelerator/formats/timeloop_directive.h"
#include "accelerator/formats/timeloop_problem.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

struct AcceleratorInputs {
  std::optional<Architecture> architecture;
  std::optional<Problem> problem;
  std::optional<Mapping> mapping;
  std::vector<TimeloopDirective> constraints;  // on the architecture first, then those on the mapspace
  std::vector<TimeloopDensity> densities;
  std::optional<Json> sparse_optimizations;   // as it is written
  std::vector<TimeloopMetadata> metadata;     // of levels that keep some
  std::vector<AccelergyTable> energy_tables;  // with actions that only sparse hardware has
  bool constraints_given = false;             // some file has a section of them, which may be empty
  bool energies_given = false;                // by an ERT, for every level
  bool areas_given = false;
  std::vector<std::string> notes;  // what was read in another way than written, or not at all
};

struct TimeloopText {
  std::string source;  // names it in errors
  std::string text;
};

// A section may stand once; constraints, tables and variables of several files add up. A mapping needs its architecture
// and problem beside it. Sections that only steer Timeloop's own search are skipped with a note; others that nobody
// here knows are errors. Jinja templates are expanded (formats/jinja.h) with `variables`; those of a text cannot
// include other files.
// `known`: an architecture and a problem that came from elsewhere, for tables, constraints and a mapping to apply to.
AcceleratorInputs read_timeloop_texts(std::span<const TimeloopText> texts, AcceleratorInputs known = {},
                                      const JinjaVariables& variables = {});
AcceleratorInputs read_timeloop_files(std::span<const std::filesystem::path> paths, AcceleratorInputs known = {},
                                      const JinjaVariables& variables = {});

}  // namespace foretoken
