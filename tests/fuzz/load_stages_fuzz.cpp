// Any bytes are either stages of runs with sane numbers, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "validate/serving/load_stages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    CsvReader table = CsvReader::from_text(std::string(as_text(data, size)), "input");
    if (!has_load_stages(table)) return 0;
    for (const StagedRun& run : read_staged_runs(table)) {
      promise(!run.stages.empty() && run.tensor >= 1, "a run has stages and a device");
      for (const LoadStage& stage : run.stages) {
        promise(stage.rate > 0 && stage.requests >= 1 && stage.prompts >= 1, "somebody asks");
        promise(stage.failures >= 0 && stage.failures <= stage.requests, "no more fail than were sent");
        promise(stage.e2e_ms > 0 && stage.ttft_ms > 0, "what was measured took time");
      }
    }
  } catch (const InputError&) {  // expected for most bytes
  }
  return 0;
}
