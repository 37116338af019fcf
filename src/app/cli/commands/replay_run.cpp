#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/run_flags.h"
#include "app/cli/grammar/declarations.h"
#include "app/cli/output/out_file.h"
#include "base/file.h"
#include "report/serving/run_comparison_report.h"

namespace foretoken {
namespace {

class ReplayRunCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("run", run_, "Measured run: a run folder or the result of a load-testing tool (docs/observe.md)",
                 true);
    declare_deployment(options);
    options.flag("--requests", with_requests_, "With --json: include every request, measured and predicted");
    options.text("--out", out_, "Write every request, measured and predicted, to this CSV file");
    options.text("--html", html_,
                 "Write an HTML report: measured and predicted over time, and what explains the difference");
    flags_.declare(options);
    options.show_first({"--requests", "--out", "--html", "--model", "--device", "--tensor-parallel-size", "--engine",
                        "--max-model-len"});
    options.footer(
        "Flags describe the deployment as in `foretoken serve`; those stored in run.json need not be "
        "repeated.\nExamples:\n  foretoken replay-run examples/runs/small");
  }

  Answer run(const Library& library) const override {
    const RunCase measured = flags_.read(run_, library);
    const RunComparison comparison =
        compare_run(measured, serving_facts(library, tier_from_name(flags_.replica.tier).value()));
    Answer answer{.text = run_comparison_text(comparison), .json = run_comparison_json(comparison, with_requests_)};
    if (!out_.empty()) {
      write_file(out_, with_flag_names(run_comparison_csv(comparison)));
      answer.text += fmt::format("wrote {}\n", out_);
    }
    if (!html_.empty()) {
      write_report(html_, run_comparison_html(comparison, options_->line()));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

 private:
  const Options* options_ = nullptr;
  std::string run_, out_, html_;
  bool with_requests_ = false;
  RunFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_replay_run() {
  return std::make_unique<ReplayRunCommand>();
}

}  // namespace foretoken
