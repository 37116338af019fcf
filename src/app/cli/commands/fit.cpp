#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/grammar/known_names.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "app/cli/output/today.h"
#include "base/counted.h"
#include "base/day.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/fit_correlation.h"
#include "kernel/edge/edge_predictor_file.h"
#include "kernel/edge/fit_edge.h"
#include "kernel/edge/thread_scaling.h"
#include "kernel/family.h"
#include "kernel/fewshot/fit_prior.h"
#include "kernel/fit/fit_calibrations.h"
#include "kernel/fit/fit_campaign.h"
#include "kernel/fit/power_fit.h"
#include "kernel/sustained_rows.h"
#include "kernel/validate.h"
#include "network/calibration/fit_communication.h"
#include "report/accuracy/training_fit_report.h"
#include "report/edge/edge_report.h"
#include "report/kernel/power_report.h"
#include "report/network/communication_report.h"
#include "report/serving/calibration_report.h"
#include "training/fit/fit_training.h"
#include "validate/steps/validate_steps.h"

namespace foretoken {
namespace {

class FitCommand : public Command {
 public:
  void declare(Options& options) override {
    declare_roofline(options);
    declare_derates(options);
    declare_kernels(options);
    declare_campaign(options);
    declare_correlation(options);
    declare_training(options);
    declare_collectives(options);
    declare_power(options);
    declare_edge(options);
    declare_edge_kernels(options);
  }

  Answer run(const Library& library) const override {
    // Whoever reads the files again needs it; a fit may take an hour.
    if (!date_.empty() && !is_day(date_)) {
      throw InputError({.source = "--date", .value = printable(date_), .expected = "a date such as 2026-11-17"});
    }
    if (edge_->was_chosen()) return fit_edge();
    if (edge_kernels_->was_chosen()) return fit_edge_kernels();
    if (power_->was_chosen()) return fit_boards(library);
    if (collectives_->was_chosen()) return fit_collectives(library);
    if (training_->was_chosen()) return fit_training_stacks(library);
    if (campaign_->was_chosen()) return fit_campaign_file(library);
    if (correlation_->was_chosen()) return fit_error_correlations(library);
    if (derates_->was_chosen()) return fit_derates(library);
    return roofline_->was_chosen() ? fit_roofline(library) : fit_kernels(library);
  }

 private:
  void declare_roofline(Options& options) {
    roofline_ = &options.subcommand(
        "roofline", "Fit how far measured kernels are from the roofline: 90% factors by family and size");
    declare_common(*roofline_, "JSON file to write");
    roofline_->footer(
        "Example:\n  foretoken fit roofline --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "intervals.json");
  }

  void declare_derates(Options& options) {
    derates_ = &options.subcommand("derates",
                                   "Fit the share of the spec sheet's peak and bandwidth that measured kernels reach, "
                                   "by family. Used for devices without measured kernels");
    declare_common(*derates_, "JSON file to write");
    derates_->footer(
        "Example:\n  foretoken fit derates --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "derates.json");
  }

  void declare_kernels(Options& options) {
    kernels_ = &options.subcommand(
        "kernels",
        "Fit the learned kernel tiers: constants shared by all devices, and corrections for each measured one");
    declare_common(*kernels_, "Folder to write calibrations to");
    kernels_->list("--without", without_,
                   "Generations (hopper, sm_90) to hide from the cross tier; a device stands for its whole generation. "
                   "With --sweep-size they still get a measured tier");
    kernels_->list("--without-device", without_devices_,
                   "Devices to hide from the cross tier; other devices of their generation stay");
    kernels_->choice("--hold-out", hold_out_, {"nothing", "rows", "layers"},
                     "Rows to hold out for scoring: a fifth of each device's rows, or all rows of a fifth of its "
                     "layers (n and k of a gemm, sizes of experts)");
    kernels_->list("--families", families_, "Only these kernel families");
    kernels_->integer("--sweep-size", sweep_size_, {.least = 0, .most = 100'000'000},
                      "Number of rows of each device for its measured tier; 0 = all");
    kernels_->integer("--probe", probe_rows_, {.least = 0, .most = 10'000},
                      "Fit measured tiers from a probe with this many rows per kernel and number format, spread over "
                      "predicted times, for example 30; 0 = no probe");
    kernels_->integer("--seed", seed_, {.least = 0, .most = 1'000'000'000}, "Random seed for choosing rows");
    kernels_->flag("--cross-only", cross_only_, "Fit only the cross tier; keep the measured tiers in --out");
    kernels_->list("--sweep-devices", sweep_devices_,
                   "Fit the measured tiers of these devices only, for example h200_sxm; keep the others in --out");
    kernels_->flag("--sweep-withheld", sweep_withheld_,
                   "Fit measured tiers only for the generations of --without, from four fifths of their rows; "
                   "`validate --without` reads the result as --calibration");
    kernels_->footer(
        "Example:\n  foretoken fit kernels --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "calibrations");
  }

  void declare_campaign(Options& options) {
    campaign_ = &options.subcommand(
        "campaign", "Fit the host and software overhead of one machine from a few points of each operator");
    declare_common(*campaign_, "JSON file to write");
    campaign_->integer(
        "--points", points_, {.least = 1, .most = 1000},
        "Number of points per operator, spread over predicted times; the error is computed on all others");
    declare_kernel_source(*campaign_, tier_);
    campaign_->footer(
        "Example:\n  foretoken fit campaign --data measurements/operators.csv --points 4 --source 'our lab' --date "
        "2026-11-15 --out "
        "campaign.json");
  }

  void declare_correlation(Options& options) {
    correlation_ = &options.subcommand("correlation",
                                       "Fit how the errors of kernels correlate, by kernel form, from measured steps");
    correlation_->list("--data", data_, "Files of measured steps in the format of `validate steps`, comma-separated",
                       true);
    correlation_->list("--devices", devices_, "Only these devices, as named in the files");
    correlation_->list("--models", models_, "Only these models, as named in the files");
    correlation_->list("--stacks", stacks_, "Only these stacks");
    declare_result(*correlation_, "JSON file to write");
    declare_calibration(*correlation_);
    correlation_->footer(
        "Example:\n  foretoken fit correlation --data data/measured/h200_sxm/steps.csv --source 'our lab' --date "
        "2026-11-15 --out error_correlations.json");
  }

  void declare_training(Options& options) {
    training_ = &options.subcommand("training", "Fit the constants of training stacks from published training runs");
    training_->text("--data", training_data_, "CSV file of training runs in the format of `validate training`", true);
    training_->list("--stacks", stacks_, "Only runs of these stacks, and only the constants they use");
    training_->integer("--folds", folds_, {.least = 2, .most = 50}, "Number of cross-validation folds");
    training_->choice("--folds-by", folds_by_, {"configuration", "model"},
                      "What a fold leaves out together: all releases and dates of a configuration, or all runs of a "
                      "model by a source");
    training_->number("--prior", prior_, {.least = 0, .most = 1},
                      "Weight of the squared log distance of each constant from its usual value");
    training_->text("--out", out_, "Folder to write stack files to", true);
    training_->text("--rows", rows_, "Also write every run, as fitted and as held out, to this CSV file");
    training_->text("--date", date_, "Date of the fit; stored in the files [today]");
    declare_calibration(*training_);
    training_->footer(
        "Constants that a stack lists as fitted start from their usual values.\nExample:\n  foretoken fit training "
        "--data runs.csv --out data/training/stacks");
  }

  void declare_collectives(Options& options) {
    collectives_ = &options.subcommand(
        "collectives",
        "Fit models of collectives that carry over between systems, and the sweep of each measured system");
    collectives_->list("--data", data_, "Tables of measured collectives, or folders of them (comma-separated)", true);
    collectives_->text("--out", out_, "Folder to write calibrations to", true);
    collectives_->text("--source", source_, "Where the measurements come from; stored in the files", true);
    collectives_->text("--date", date_, "Date of the fit; stored in the files", true);
    collectives_->list("--without", without_, "Systems to leave out, together with their whole generation");
    collectives_->list("--without-sizes", without_sizes_, "Message sizes (bytes) or token counts to leave out");
    collectives_->list("--without-ranks", without_ranks_, "Rank counts to leave out");
    collectives_->footer(
        "Example:\n  foretoken fit collectives --data measurements/comm --source 'our lab' --date 2026-11-15 --out "
        "networks");
  }

  void declare_power(Options& options) {
    power_ = &options.subcommand(
        "power", "Fit energy per FLOP and byte and the clock at the power limit, from sustained kernels");
    declare_common(*power_, "JSON file to write");
    declare_calibration(*power_);
    power_->footer(
        "Example:\n  foretoken fit power --data measurements/ --source 'our lab' --date 2026-11-15 --out power.json");
  }

  void declare_edge(Options& options) {
    edge_ = &options.subcommand("edge",
                                "Fit a prior for a space of architectures from known devices, for `foretoken adapt`");
    edge_->text("--space", space_, "Architecture space: nasbench201, fbnet, ofa, hat", true);
    edge_->text("--data", edge_data_, "CSV file of latencies: the columns of the space and one column per device",
                true);
    declare_result(*edge_, "JSON file to write");
    edge_->footer(
        "Example:\n  foretoken fit edge --space nasbench201 --data nasbench201_latency.csv.gz --source 'our lab' "
        "--date "
        "2026-11-15 --out nasbench201.json");
  }

  void declare_edge_kernels(Options& options) {
    edge_kernels_ =
        &options.subcommand("edge-kernels", "Fit kernel times of a CPU or phone from a sweep of its fused kernels");
    edge_kernels_->text("--data", edge_kernel_data_, "CSV file of measured kernels: kind, params, cpu_ms_min", true);
    declare_result(*edge_kernels_, "JSON file to write");
    edge_kernels_->text("--device", edge_options_.device, "Name of the processor; stored in the file", true);
    edge_kernels_->text("--runtime", edge_options_.runtime, "Name of the runtime; stored in the file", true);
    edge_kernels_->text("--runtime-version", edge_options_.runtime_version,
                        "Version of the runtime; stored in the file");
    edge_kernels_->integer("--threads", edge_threads_, {.least = 1, .most = 4096},
                           "Number of threads that the kernels ran on");
    edge_kernels_->text("--thread-data", edge_thread_data_,
                        "CSV file of the same kernels on 1, 2, 4, ... threads: kind, params, threads, wall_ms_min. "
                        "Needed for `foretoken edge --threads`");
    edge_kernels_->number("--cache-kib", edge_cache_kib_, {.least = 1, .most = 1e9},
                          "Private cache of one core, in KiB");
    edge_kernels_->number("--last-level-kib", edge_last_level_kib_, {.least = 1, .most = 1e9},
                          "Last-level cache, shared or private, in KiB");
    edge_kernels_->flag(
        "--whole-calls", edge_options_.whole_calls,
        "Rows are single-kernel models timed from outside, including the copy of outputs (ONNX Runtime from Python)");
    edge_kernels_->footer(
        "Example:\n  foretoken fit edge-kernels --data sweep.csv --device 'Arm Neoverse-V1' --runtime 'ONNX Runtime' "
        "--whole-calls\n    --source 'own sweep' --date 2026-11-15 --out my_core.json");
  }

  void declare_common(Options& options, const std::string& out_help) {
    options.list("--data", data_, "Folders of <device>/<family>.csv[.gz] (comma-separated)", true);
    options.list("--devices", devices_, "Only these devices");
    options.list("--where", where_, "Only rows with COLUMN=VALUE, for example split=train");
    declare_result(options, out_help);
  }

  void declare_result(Options& options, const std::string& out_help) {
    options.text("--out", out_, out_help, true);
    options.text("--source", source_, "Where the measurements come from; stored in the file", true);
    options.text("--date", date_, "Date of the fit; stored in the file", true);
  }

  std::vector<KernelValidationRequest> requests(const ModelCatalogue& models) const {
    std::vector<KernelValidationRequest> list;
    for (const std::string& folder : data_) {
      list.push_back({.data = folder, .devices = devices_, .where = where_, .models = &models});
    }
    return list;
  }

  // What a fit of families knows of itself, into the file that was asked for.
  template <class Fit>
  Answer written(Fit fit, std::string (*json)(const Fit&), const char* what) const {
    fit.source = source_;
    fit.fitted_on = date_;
    write_file(out_, json(fit));
    return {.text = fmt::format("wrote {} of {} from {} to {}\n", what, counted(fit.families.size(), "family"),
                                counted(fit.devices.size(), "device"), out_),
            .json = Json::object({{"families", fit.families.size()}, {"devices", fit.devices.size()}, {"out", out_}})};
  }

  Answer fit_roofline(const Library& library) const {
    const ModelCatalogue models = library.models();
    return written(fit_roofline_intervals(requests(models), library.hardware()), roofline_intervals_json, "factors");
  }

  Answer fit_derates(const Library& library) const {
    const ModelCatalogue models = library.models();
    return written(fit_sheet_derates(requests(models), library.hardware()), sheet_derates_json, "derates");
  }

  Sweeps sweeps() const {
    if (cross_only_ && sweep_withheld_) {
      throw InputError({.source = "--cross-only", .value = "with --sweep-withheld", .expected = "only one of the two"});
    }
    if (sweep_withheld_ && without_.empty()) {
      throw InputError({.source = "--sweep-withheld",
                        .value = "without --without",
                        .expected = "--without GENERATION together with it"});
    }
    if (sweep_withheld_) return Sweeps::withheld;
    return cross_only_ ? Sweeps::none : Sweeps::all;
  }

  Answer fit_kernels(const Library& library) const {
    if (sweep_size_ > 0 && probe_rows_ > 0)
      throw InputError({.source = "--probe", .value = "with --sweep-size", .expected = "only one of the two"});
    for (const std::string& family : families_) kernel_family(family, {.field = "families"});
    FitOptions options{.seed = static_cast<uint64_t>(seed_),
                       .source = source_,
                       .date = date_,
                       .without = without_,
                       .without_devices = without_devices_,
                       .hold_out = hold_out_ == "rows"     ? HoldOut::rows
                                   : hold_out_ == "layers" ? HoldOut::layers
                                                           : HoldOut::nothing,
                       .families = families_,
                       .sweep_devices = sweep_devices_,
                       .sweep_size = static_cast<size_t>(sweep_size_),
                       .probe_rows = static_cast<size_t>(probe_rows_),
                       .progress = show_progress};
    const ModelCatalogue models = library.models();
    const CalibrationSummary summary = fit_calibrations(requests(models), library.hardware(), options, sweeps(), out_);
    return {.text = calibration_summary_text(summary) +
                    fmt::format("wrote {} to {}\n", counted(summary.files, "file"), out_),
            .json = calibration_summary_json(summary)};
  }

  Answer fit_campaign_file(const Library& library) const {
    const Tier tier = tier_from_name(tier_).value();
    const ModelCatalogue models = library.models();
    const auto maker = [&](const Device& device, Caches caches) {
      return library.benchmark_predictor(device, tier, library.calibrations(), caches);
    };
    if (data_.size() != 1) {
      throw InputError(
          {.source = "--data", .value = fmt::format("{} places", data_.size()), .expected = "one campaign"});
    }
    CampaignFit fit = fit_campaign(requests(models).front(), library.hardware(), maker, static_cast<size_t>(points_));
    fit.campaign.source = source_;
    fit.campaign.fitted_on = date_;
    write_file(out_, campaign_json(fit.campaign));
    return {.text = campaign_fit_text(fit) + fmt::format("wrote {}\n", out_), .json = campaign_fit_json(fit)};
  }

  Answer fit_error_correlations(const Library& library) const {
    std::vector<CorrelationSample> samples;
    for (const std::string& file : data_) {
      validate_steps(
          {.data = file, .devices = devices_, .stacks = stacks_, .models = models_}, library,
          [&](const ScoredStep& step) {
            samples.push_back(correlation_sample(*step.predicted, step.measured_ms, step.measured_kernel_ms));
          });
    }
    CorrelationFit fit = fit_correlations(samples);
    fit.correlations.source = source_;
    fit.correlations.fitted_on = date_;
    write_file(out_, error_correlations_json(fit.correlations));
    return {.text = correlation_fit_text(fit) + fmt::format("wrote {}\n", out_), .json = correlation_fit_json(fit)};
  }

  Answer fit_training_stacks(const Library& library) const {
    check_names("--stacks", stacks_, training_stacks_of(library).names());
    check_out_folder("--out", out_);
    OutFile rows_file("--rows", rows_);
    const HardwareCatalogue hardware = library.hardware();
    TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                              [&](const Cluster& cluster) { return machine_of(library, cluster); });
    std::vector<TrainingCase> runs;
    TrainingRowReader rows(training_data_);
    while (rows.next()) {
      std::string why;
      if (auto run = cases.find(rows.read(), "", why)) runs.push_back(std::move(*run));
    }
    const bool any = std::any_of(runs.begin(), runs.end(), [&](const TrainingCase& run) {
      const std::string& stack = cases.stacks()[run.stack].name;
      return stacks_.empty() || std::find(stacks_.begin(), stacks_.end(), stack) != stacks_.end();
    });
    if (!any) {
      throw InputError({.source = training_data_,
                        .value = "no run that can be predicted",
                        .expected = "runs of a training stack in the format of `validate training`"});
    }
    const TrainingFit fit = fit_training({.stacks = training_stacks_of(library).folder(),
                                          .only = stacks_,
                                          .folds = folds_,
                                          .folds_by_model = folds_by_ == "model",
                                          .prior = prior_,
                                          .date = date_.empty() ? today() : date_},
                                         cases, std::move(runs), show_progress);
    for (const FittedStack& stack : fit.stacks) {
      write_file(std::filesystem::path(out_) / (stack.name + ".json"), stack.file.dump() + "\n");
    }
    if (rows_file.wanted()) rows_file.stream() << fitted_runs_csv(fit);
    rows_file.close();
    return {.text = training_fit_text(fit), .json = training_fit_json(fit)};
  }

  Answer fit_collectives(const Library& library) const {
    const HardwareCatalogue hardware = library.hardware();
    const SystemLibrary systems(hardware);
    CommunicationRows rows;
    for (const std::string& place : data_) {
      CommunicationRows more = read_communication_rows(place, systems);
      rows.rows.insert(rows.rows.end(), std::make_move_iterator(more.rows.begin()),
                       std::make_move_iterator(more.rows.end()));
    }
    CommunicationFitOptions options{.source = source_, .date = date_, .without = without_, .progress = show_progress};
    const auto numbers = [](const char* flag, const std::vector<std::string>& texts) {
      std::vector<double> values;
      for (const std::string& text : texts)
        values.push_back(static_cast<double>(parse_size(flag, text, {.least = 1, .most = largest_exact_integer})));
      return values;
    };
    options.without_sizes = numbers("--without-sizes", without_sizes_);
    options.without_ranks = numbers("--without-ranks", without_ranks_);
    const CommunicationFit fit = fit_communication(rows, systems, options);
    const size_t files = write_communication_library(fit.library, out_);
    return {.text = communication_fit_text(fit.summary) + fmt::format("wrote {} to {}\n", counted(files, "file"), out_),
            .json = communication_fit_json(fit.summary)};
  }

  Answer fit_edge() const {
    const ArchitectureSpace& space = architecture_space(space_);
    const LatencyPrior prior =
        fit_latency_prior(space, read_latency_table(space, edge_data_), {.source = source_, .date = date_});
    write_file(out_, latency_prior_json(prior));
    Json devices = Json::array();
    std::string text;
    for (const KnownDevice& known : prior.devices) {
      text += fmt::format("{}: {} latencies, noise {:.1f}%{}{}\n", known.name, known.rows, 100 * known.noise,
                          known.failed_rows > 0 ? fmt::format(", {} failed rows left out", known.failed_rows) : "",
                          known.sum_of_blocks ? ", sums of blocks" : "");
      devices.push(Json::object({{"name", known.name},
                                 {"rows", known.rows},
                                 {"noise", known.noise},
                                 {"failed_rows", known.failed_rows},
                                 {"sum_of_blocks", known.sum_of_blocks}}));
    }
    return {.text = text + fmt::format("wrote {} to {}\n", counted(prior.devices.size(), "device"), out_),
            .json = Json::object({{"space", space.name}, {"devices", std::move(devices)}, {"out", out_}})};
  }

  Answer fit_boards(const Library& library) const {
    const HardwareCatalogue hardware = library.hardware();
    std::vector<PowerCalibration> calibrations;
    Answer answer{.json = Json::object({{"out", out_}, {"boards", Json::array()}})};
    Json boards = Json::array();
    std::map<std::string, std::vector<SustainedRow>> rows;  // by device
    for (const std::string& folder : data_) {
      for (const SustainedFile& file : find_sustained_files(folder)) {
        if (!devices_.empty() && std::find(devices_.begin(), devices_.end(), file.device) == devices_.end()) continue;
        std::vector<SustainedRow>& own = rows[file.device];
        for (SustainedRow& row : read_sustained_rows(file.path)) own.push_back(std::move(row));
      }
    }
    for (const auto& [name, own] : rows) {
      const Device device = hardware.device(name);
      const KernelPredictor predictor = library.predictor(device.name);
      show_progress(fmt::format("power of {}: fitting without each kernel in turn", device.name));
      PowerFit fit = fit_power(device, own, [&](const SustainedCall& call) {
        return predictor.estimate(call.shape, call.variant).seconds.value;
      });
      fit.calibration.source = source_;
      fit.calibration.fitted_on = date_;
      answer.text += power_fit_text(fit);
      boards.push(power_fit_json(fit));
      calibrations.push_back(std::move(fit.calibration));
    }
    write_file(out_, power_calibration_json(calibrations));
    answer.text += fmt::format("wrote the power of {} to {}\n", counted(calibrations.size(), "board"), out_);
    answer.json.set("boards", std::move(boards));
    return answer;
  }

  Answer fit_edge_kernels() const {
    EdgeFitOptions options = edge_options_;
    options.source = source_;
    options.date = date_;
    options.threads = static_cast<int>(edge_threads_);
    options.cache_bytes = edge_cache_kib_ * 1024;
    options.last_level_bytes = edge_last_level_kib_ * 1024;
    EdgeFit fit = foretoken::fit_edge(read_edge_rows(edge_kernel_data_), options);
    if (!edge_thread_data_.empty())
      fit.predictor.thread_scaling = read_thread_scaling(edge_thread_data_, options.threads);
    write_file(out_, edge_predictor_json(fit.predictor));
    return {.text = edge_fit_text(fit) + fmt::format("wrote {}\n", out_), .json = edge_fit_json(fit)};
  }

  Options* edge_kernels_ = nullptr;
  std::string edge_kernel_data_, edge_thread_data_;
  EdgeFitOptions edge_options_;
  int64_t edge_threads_ = 1;
  double edge_cache_kib_ = 1024, edge_last_level_kib_ = 32 * 1024;
  Options* power_ = nullptr;
  Options* edge_ = nullptr;
  std::string space_, edge_data_;
  Options* collectives_ = nullptr;
  Options* training_ = nullptr;
  std::string training_data_, rows_;
  int64_t folds_ = 5;
  std::string folds_by_ = "configuration";
  double prior_ = TrainingFitRequest{}.prior;
  Options* roofline_ = nullptr;
  Options* derates_ = nullptr;
  Options* campaign_ = nullptr;
  Options* kernels_ = nullptr;
  Options* correlation_ = nullptr;
  std::vector<std::string> data_, devices_, where_, without_, without_sizes_, without_ranks_, families_, models_,
      stacks_, without_devices_, sweep_devices_;
  std::string hold_out_ = "nothing";
  std::string out_, source_, date_;
  std::string tier_ = "best";
  int64_t sweep_size_ = 0, probe_rows_ = 0, seed_ = 1, points_ = 4;
  bool cross_only_ = false, sweep_withheld_ = false;
};

}  // namespace

std::unique_ptr<Command> make_fit() {
  return std::make_unique<FitCommand>();
}

}  // namespace foretoken
