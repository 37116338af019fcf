#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/commands/validate/withheld_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/placement_flags.h"
#include "app/cli/flags/withheld_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "report/accuracy/validation_report.h"
#include "validate/serving/validate_run.h"
#include "validate/serving/validate_serving.h"

namespace foretoken {
namespace {

class ValidateServing : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("--data", data_, "CSV file of measured operating points (.csv, .csv.gz)");
    options.text(
        "--run", run_folder_,
        "Folder of a single run with meta.json and requests.csv, instead of --data; compared request by request");
    options.text("--op-tables", op_tables_,
                 "With --run: take step times from operators measured in the engine on one rank, plus communication");
    options.text("--device", device_, "With --run: the device, if meta.json does not name a known one");
    options.flag("--own-blocks", own_blocks_, "With --run: predict the number of KV blocks instead of reading it");
    options.list("--tiers", request_.tiers, "Only these tiers (comma-separated)");
    options.list("--devices", request_.devices, "Only these GPUs, as named in the file");
    options.list("--models", request_.models, "Only these models");
    options.list("--engines", request_.engines, "Only these engines");
    options.list("--kinds", request_.kinds, "Only these kinds of models: dense, moe");
    options.integer("--every", every_, {.least = 1, .most = 1'000'000},
                    "Only every Nth row of the file: a sample that is the same each time");
    options.text("--speculative-acceptance", acceptance_,
                 "CSV file of measured acceptance lengths, for rows with speculative decoding "
                 "[spec_decode_acceptance.csv next to the data, if present]");
    options.text("--traces", traces_,
                 "Folder of request files that rows replay [traces next to the data's folder, if present]");
    options.text("--group-by", request_.group_by, "Column to group by, instead of tier");
    declare_kernel_source(options, tier_);
    withheld_.declare(options, false);
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of groups simulated at the same time; 0 = one per core");
    placement_.declare(options);
    options.heading("Output");
    options.text("--out", out_, "Write every value with predicted, low, high and error to this CSV file");
    options.footer(
        "Each row is simulated from its model, GPU, engine, number formats, parallel layout, lengths and load; the\n"
        "measured values are never used. Rows that cannot be expressed are skipped with the reason.\n"
        "Examples:\n  foretoken validate serving --data cases.csv --kinds dense\n"
        "  foretoken validate serving --run vllm_runs/RTX4090_Llama-3.1-8B --op-tables "
        "vllm_runs/RTX4090_Llama-3.1-8B/op_profile");
  }

  Answer run(const Library& library) const override {
    const bool is_run = data_.empty();
    if (data_.empty() == run_folder_.empty()) {
      throw InputError({.source = "--data",
                        .value = data_.empty() ? "not given" : "and --run",
                        .expected = "either --data FILE or --run FOLDER"});
    }
    if (is_run) {
      options_->refuse(
          {"--tiers", "--devices", "--models", "--engines", "--kinds", "--every", "--speculative-acceptance",
           "--traces", "--group-by", "--threads", "--without", "--kernel-data"},
          {}, "--run");
    } else {
      options_->refuse({"--op-tables", "--device", "--own-blocks"}, {}, "--data");
    }
    ServingValidationRequest request = request_;
    request.data = data_;
    request.acceptance = given_or_beside(acceptance_, request.data.parent_path() / "spec_decode_acceptance.csv");
    request.traces = given_or_beside(traces_, request.data.parent_path() / ".." / "traces");
    request.threads = static_cast<int>(threads_);
    request.every = static_cast<size_t>(every_);
    if (withheld_.is_wanted()) return without_generation(library, request);
    const ServingFacts facts = facts_of(library, tier_from_name(tier_).value());
    OutFile rows("--out", out_);
    ScoredServingSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_serving_header();
      sink = [&](const ScoredServing& scored) { rows.stream() << scored_serving_row(scored); };
    }
    const Validation validation =
        is_run ? replay_run(library, facts, sink) : validate_serving(request, library, facts, sink);
    rows.close();
    return validation_answer(validation, "serving");
  }

 private:
  ServingFacts facts_of(const Library& library, Tier tier) const {
    ServingFacts facts = serving_facts(library, tier);
    if (const PlacementSpec given = placement_.spec(); given.is_given()) {
      facts.device_models = [make = facts.device_models, given](const Device& device, const ParallelPlan& plan,
                                                                const PlacementSpec&) {
        return make(device, plan, given);
      };
    }
    return facts;
  }

  // By metric; everything but kernels (communication, hosts, schedulers) is what ships.
  Answer without_generation(const Library& library, ServingValidationRequest request) const {
    options_->refuse({"--tier", "--out", "--group-by"}, {}, "--without");
    const auto calibrations = withheld_.calibrations(library, options_->calibration());
    const Library withheld = library.with_calibrations(calibrations->folder());
    request.devices =
        devices_of_generation(calibrations->generation(), request.data, "gpu", request.devices, library.hardware());
    return withheld_answer("serving", calibrations->generation(), [&](Tier tier) {
      ValidationTally tally(0);
      Validation all = validate_serving(request, withheld, facts_of(withheld, tier), [&](const ScoredServing& scored) {
        tally.add(scored.metric,
                  {.measured = scored.measured,
                   .predicted = scored.predicted.value,
                   .low = scored.predicted.low,
                   .high = scored.predicted.high},
                  0);
      });
      tally.write(all);
      return all;
    });
  }

  static std::filesystem::path given_or_beside(const std::string& given, const std::filesystem::path& beside) {
    if (!given.empty()) return given;
    return std::filesystem::exists(beside) ? beside : std::filesystem::path();
  }

  Validation replay_run(const Library& library, const ServingFacts& facts, const ScoredServingSink& sink) const {
    return validate_run({.folder = run_folder_, .op_tables = op_tables_, .device = device_, .own_blocks = own_blocks_},
                        library, facts, sink)
        .errors;
  }

  const Options* options_ = nullptr;
  std::string data_, out_, acceptance_, traces_, tier_ = "best";
  std::string run_folder_, op_tables_, device_;
  bool own_blocks_ = false;
  int64_t threads_ = 0, every_ = 1;
  PlacementFlags placement_;
  WithheldFlags withheld_;
  ServingValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_serving() {
  return std::make_unique<ValidateServing>();
}

}  // namespace foretoken
