// Any bytes are either training runs whose models and plans have sane sizes, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "training/runs/run_row.h"

namespace {

using namespace foretoken;

void check(const TrainingRow& row) {
  promise(row.tp >= 1 && row.cp >= 1 && row.pp >= 1 && row.dp >= 1 && row.ep >= 1, "somebody trains");
  for (const auto& measured : {row.iter_time_s, row.tflops_per_gpu, row.mfu_pct, row.tokens_per_s_per_gpu}) {
    promise(!measured || *measured > 0, "what was measured is above zero");
  }
  const TrainingPlan plan = plan_of(row, {});
  promise(plan.devices() == row.n_gpus, "the plan takes the devices of the row");
  promise(plan.micro_batch >= 1 && plan.virtual_stages >= 1, "sizes have no sign");
  const Model model = model_of(row);
  promise(static_cast<int64_t>(model.layers.size()) == row.layers, "the model has the layers of the row");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    TrainingRowReader reader(CsvReader::from_text(std::string(as_text(data, size)), "input"));
    while (reader.next()) check(reader.read());
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
