#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/run_flags.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "report/serving/deployment_report.h"
#include "validate/deployment/calibrate_deployment.h"

namespace foretoken {
namespace {

class CalibrateCommand : public Command {
 public:
  void declare(Options& options) override {
    options.list("runs", runs_,
                 "Measured runs of one deployment: run folders or results of a load-testing tool (docs/observe.md)",
                 true);
    options.text("--out", out_, "Write the deployment file, to be used with --deployment");
    options.text("--name", name_, "Name of the deployment, for reports");
    options.flag("--suggest", suggest_, "Also suggest the load test that would improve the calibration most");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The result does not depend on it");
    flags_.declare(options);
    options.show_first({"--out", "--name", "--suggest", "--model", "--device", "--tensor-parallel-size", "--engine",
                        "--max-model-len"});
    options.footer(
        "Flags describe the deployment as in `foretoken serve`; those stored in run.json need not be "
        "repeated.\nExamples:\n  foretoken calibrate examples/runs/small --out my-cluster.json\n  foretoken serve "
        "--model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 200 --deployment my-cluster.json");
  }

  Answer run(const Library& library) const override {
    CalibrationRequest request{.cases = {},
                               .facts = serving_facts(library, tier_from_name(flags_.replica.tier).value()),
                               .name = name_,
                               .suggest = suggest_,
                               .threads = threads_,
                               .tell = [](const std::string& text) {
                                 show_progress(text);
                                 check_still_wanted();
                               }};
    for (const std::string& folder : runs_) request.cases.push_back(flags_.read(folder, library));
    const Calibration calibration = calibrate_deployment(request);
    Answer answer{.text = calibration_text(calibration), .json = calibration_json(calibration)};
    if (!out_.empty()) {
      write_file(out_, deployment_json(calibration.deployment).dump() + "\n");
      answer.text += fmt::format("\nwrote {}\n", out_);
    }
    return answer;
  }

 private:
  std::vector<std::string> runs_;
  std::string out_, name_;
  bool suggest_ = true;
  int64_t threads_ = 0;
  RunFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace foretoken
