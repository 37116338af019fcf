#include <set>
#include <span>
#include <tuple>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/grammar/known_names.h"
#include "app/cli/output/out_file.h"
#include "base/csv.h"
#include "base/error.h"
#include "report/accuracy/validation_report.h"
#include "training/scale/validate_step_times.h"
#include "validate/training/validate_training.h"

namespace foretoken {
namespace {

class ValidateTraining : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of training runs");
    options.flag("--facts", facts_,
                 "Use published speeds of well-known training runs that no stack was fitted to "
                 "(data/training/public_facts.csv), instead of --data");
    options.list("--sources", request_.sources, "Only these sources (comma-separated)");
    options.list("--models", request_.models, "Only these models");
    options.list("--gpus", request_.gpus, "Only these devices, as named in the file");
    options.text("--group-by", request_.group_by, "Column to group by, instead of source");
    options.text("--stack", request_.stack, "Training stack for all rows [the one assigned to each source]");
    declare_calibration(options);
    options.text("--out", out_, "Write every row with predicted, low, high and error to this CSV file");
    options.footer(
        "Columns: id, source, model, task, the model's sizes (layers, hidden, heads, ...), gpu, gpus_per_node, "
        "n_gpus,\ntp, sp, cp, pp, vpp, dp, ep, zero, micro_batch, global_batch, dtype, recompute, iter_time_s, notes; "
        "and,\nwhere they help, stack, cluster, optimizer, lora_rank, lora_target, tied, clips, peak_allocated_gb; "
        "see\ndocs/training.md. Times are per optimizer step. A table of step-time distributions (run_id, run, "
        "gpu,\nn_gpus, steps, mean, p05, ..., max) is compared with the predicted variation.\nExample:\n  foretoken "
        "validate training --data runs.csv --sources mosaic-foundry");
  }

  Answer run(const Library& library) const override {
    if (facts_ == !data_.empty()) {
      throw InputError({.source = "--data",
                        .value = facts_ ? "together with --facts" : "not given",
                        .expected = "a CSV file of training runs, or --facts"});
    }
    const std::filesystem::path data =
        facts_ ? library.directory() / "training" / "public_facts.csv" : std::filesystem::path(data_);
    CsvReader table{data};
    if (is_step_times(table)) return step_times(std::move(table));
    TrainingValidationRequest request = request_;
    request.data = data;
    check_filters(library, data);
    OutFile rows("--out", out_);
    ScoredTrainingSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_training_header();
      sink = [&](const ScoredTraining& scored) { rows.stream() << scored_training_row(scored); };
    }
    const HardwareCatalogue hardware = library.hardware();
    TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                              [&](const Cluster& cluster) { return machine_of(library, cluster); });
    const Validation validation = validate_training(request, cases, sink);
    rows.close();
    if (validation.overall.n == 0 && validation.skipped.empty()) {
      throw InputError({.source = data.string(),
                        .value = "no matching run",
                        .expected = "at least one row that matches all filters"});
    }
    return validation_answer(validation, "training");
  }

 private:
  // InputError for a stack that there is not, and for a source, model or device that the file does not name.
  void check_filters(const Library& library, const std::filesystem::path& data) const {
    if (!request_.stack.empty())
      check_names("--stack", std::span(&request_.stack, 1), training_stacks_of(library).names());
    const std::tuple<const char*, const char*, const std::vector<std::string>*> filters[] = {
        {"--sources", "source", &request_.sources},
        {"--models", "model", &request_.models},
        {"--gpus", "gpu", &request_.gpus}};
    for (const auto& [flag, column, wanted] : filters) {
      if (!wanted->empty()) check_names(flag, *wanted, values_of(data, column));
    }
  }
  static std::vector<std::string> values_of(const std::filesystem::path& data, const char* column) {
    CsvReader table{data};
    const size_t index = table.column(column);
    std::set<std::string> values;
    while (table.next()) values.emplace(table.cell(index));
    return {values.begin(), values.end()};
  }

  // Distributions of the steps of single runs, instead of runs.
  static bool is_step_times(const CsvReader& table) { return table.find_column("p50") && table.find_column("p95"); }
  Answer step_times(CsvReader table) const {
    if (!out_.empty()) {
      throw InputError({.source = "--out",
                        .value = printable(data_),
                        .expected = "a table of runs: step-time distributions have no rows to write"});
    }
    const std::vector<MeasuredStepTimes> rows = read_step_times(std::move(table));
    const std::vector<StepTimeCheck> checks = validate_step_times(rows);
    const Validation validation = step_time_errors(checks);
    Answer answer = validation_answer(validation, "training");
    answer.json.set("runs_within_0.02", runs_within(checks));
    return answer;
  }

  std::string data_, out_;
  bool facts_ = false;
  TrainingValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_training() {
  return std::make_unique<ValidateTraining>();
}

}  // namespace foretoken
