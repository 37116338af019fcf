#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/text.h"
#include "validate/deployment/validate_calibration.h"

namespace foretoken {
namespace {

class ValidateCalibration : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_,
                 "CSV file of inference-perf load stages, several per model, or of published operating points");
    options.list("--runs", runs_,
                 "Folders of single runs with meta.json and requests.csv, comma-separated, instead of --data");
    options.list("--stages", stages_,
                 "With load stages: calibrate on every combination of this many stages of a model [1,3]");
    options.flag("--other-models", other_models_, "With load stages: also calibrate on all stages of the other models");
    options.integer("--points-per-group", request_.points_per_group, {.least = 0, .most = 1'000'000},
                    "With operating points: at most this many points of each group, spread evenly over the load; 0 = "
                    "all. One of medium load calibrates, the others are predicted");
    options.integer("--first-requests", request_.first_requests, {.least = 1, .most = 1'000'000},
                    "With --runs: calibrate on this many first requests and predict the others");
    options.list("--models", request_.models, "Only these models");
    options.list("--devices", request_.devices, "Only these GPUs, as named in the file");
    declare_kernel_source(options, tier_);
    options.integer("--threads", request_.threads, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The result does not depend on it");
    options.footer(
        "Rows used for calibration are never scored.\nExamples:\n  foretoken validate calibration --data "
        "inference_perf_runs.csv --stages 1\n  foretoken validate calibration --runs vllm_runs/RTX4090_Llama-3.1-8B");
  }

  Answer run(const Library& library) const override {
    if (data_.empty() == runs_.empty()) {
      throw InputError({.source = "--data",
                        .value = data_.empty() ? "not given" : "and --runs",
                        .expected = "either --data FILE or --runs FOLDER,..."});
    }
    CalibrationValidationRequest request = request_;
    request.data = data_;
    request.runs.assign(runs_.begin(), runs_.end());
    request.other_models = other_models_;
    if (!stages_.empty()) request.stages.clear();
    for (const std::string& text : stages_) {
      request.stages.push_back(parse_size("--stages", text, {.least = 1, .most = 1000}));
    }
    request.tell = [](const std::string& text) {
      show_progress(text);
      check_still_wanted();
    };
    return validation_answer(
        validate_calibration(request, library, serving_facts(library, tier_from_name(tier_).value())), "calibration");
  }

 private:
  std::string data_, tier_ = "best";
  std::vector<std::string> runs_, stages_;
  bool other_models_ = true;
  CalibrationValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_calibration() {
  return std::make_unique<ValidateCalibration>();
}

}  // namespace foretoken
