// Runs of a load generator in stages: requests at even distances, prompts that come again and again, means of each
// stage as the client saw them (inference-perf). One row of a table is one stage; stages of one experiment follow each
// other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/validation.h"
#include "serving/engine/engine_builder.h"
#include "serving/serving_spec.h"
#include "validate/serving/scored_serving.h"

namespace foretoken {

class Library;

struct LoadStage {
  size_t row = 0;
  std::string id;   // of the experiment, and the stage's number
  double rate = 0;  // requests/s
  int64_t requests = 0;
  int64_t failures = 0;  // the client gave up on these
  int64_t prompts = 0;   // different ones, sent in turn
  int64_t prompt_len = 0, output_len = 0;
  double e2e_ms = 0, ttft_ms = 0;  // means
  double ttft_p50_ms = 0;          // 0 = not known
};

struct StagedRun {
  std::string experiment, model, device;
  std::string engine_version;  // of vLLM
  int64_t tensor = 1;
  EngineFlags flags;
  std::vector<LoadStage> stages;
};

// Whether the table is one of stages.
bool has_load_stages(const CsvReader& table);

// InputError with file, row and column.
std::vector<StagedRun> read_staged_runs(CsvReader& table);

// All requests of its stages. Prompts share whole blocks of 16 tokens with their like.
std::vector<Request> requests_of(const StagedRun& run);

struct StagedSpecs {
  EngineSpec engine;
  LoadSpec load;
};
StagedSpecs staged_specs(const StagedRun& run, const Library& library);

// As validate_serving(), which calls it for such tables. Stages whose client gave up on requests are skipped.
Validation validate_load_stages(const ServingValidationRequest& request, const Library& library,
                                const ServingFacts& facts, const ScoredServingSink& sink = {});

}  // namespace foretoken
