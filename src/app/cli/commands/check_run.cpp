#include "validate/deployment/check_run.h"
#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/run_flags.h"
#include "base/error.h"
#include "report/serving/deployment_report.h"

namespace foretoken {
namespace {

class CheckRunCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("run", run_, "Measured run: a run folder or the result of a load-testing tool (docs/observe.md)",
                 true);
    declare_deployment(options);
    options.number("--false-alarms", false_alarms_, {.least = 1e-6, .most = 0.5},
                   "Accepted share of false alarms: runs of an unchanged deployment reported as drift");
    flags_.declare(options);
    options.show_first(
        {"--false-alarms", "--model", "--device", "--tensor-parallel-size", "--engine", "--max-model-len"});
    options.footer(
        "The exit status is 0 if the run agrees with the deployment and 3 if it drifts.\nExamples:\n  foretoken "
        "check-run nightly --deployment my-cluster.json");
  }

  Answer run(const Library& library) const override {
    if (!library.deployment()) {
      throw InputError({.source = "--deployment",
                        .value = "not given",
                        .expected = "the file that `foretoken calibrate` wrote for this deployment"});
    }
    const RunCase measured = flags_.read(run_, library);
    const RunCheck check =
        check_run_against(measured, serving_facts(library, tier_from_name(flags_.replica.tier).value()), false_alarms_);
    return {.text = run_check_text(check), .json = run_check_json(check), .failure = run_check_failure(check)};
  }

 private:
  const Options* options_ = nullptr;
  std::string run_;
  double false_alarms_ = 0.01;
  RunFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_check_run() {
  return std::make_unique<CheckRunCommand>();
}

}  // namespace foretoken
