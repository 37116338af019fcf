// Any bytes are either a training configuration whose plan and model have sane sizes, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "training/import/import_config.h"

namespace {

using namespace foretoken;

void check(const ImportedTraining& imported) {
  promise(!imported.format.empty(), "a format was recognised");
  const TrainingPlan plan = plan_with({}, imported, 8);
  promise(plan.parallel.tensor >= 1 && plan.parallel.pipeline >= 1 && plan.parallel.context >= 1 &&
              plan.parallel.data >= 1 && plan.parallel.expert >= 1,
          "somebody trains");
  promise(plan.micro_batch >= 1 && plan.global_batch >= 1 && plan.virtual_stages >= 1, "sizes have no sign");
  if (imported.model) promise(!imported.model->layers.empty() && imported.model->hidden >= 1, "a model has layers");
  for (const IgnoredKey& ignored : imported.ignored) promise(ignored.line >= 0, "a key stands on a line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    check(parse_training_config(as_text(data, size), "input"));
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
