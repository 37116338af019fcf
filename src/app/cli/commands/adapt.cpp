#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/edge_flags.h"
#include "app/cli/flags/graph_flags.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/edge/adapt_network.h"
#include "kernel/edge/edge_predictor_file.h"
#include "kernel/fewshot/latency_table.h"
#include "kernel/fewshot/measure_next.h"
#include "report/edge/adaptation_report.h"
#include "report/edge/network_adaptation_report.h"
#include "report/parts/model_notes.h"

namespace foretoken {
namespace {

constexpr size_t drawn_candidates = 300;  // for advice without --query
constexpr size_t most_candidates = 2000;  // advice costs the square of their number
constexpr size_t least_timings_to_leave_out = 4;
constexpr size_t few_timings = 10;

// How far predictions can be relied on, where that is not far.
void add_count_note(Answer& answer, size_t timings) {
  if (timings == 0 || timings >= few_timings) return;
  const std::string note = fmt::format("Only {} given: predictions may be far off. Give 10 to 50 timings.",
                                       timings == 1 ? "1 timing was" : fmt::format("{} timings were", timings));
  answer.text += notes_text(std::span(&note, 1));
  answer.json.set("notes", Json::array({note}));
}

std::vector<std::string> space_names() {
  std::vector<std::string> names;
  for (const ArchitectureSpace& space : architecture_spaces()) names.emplace_back(space.name);
  return names;
}

class AdaptCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.choice("--space", space_, space_names(),
                   "Architecture space of the networks [any networks: the files name ONNX files or kernels]");
    options.text("--samples", samples_,
                 "CSV file of timings: the columns of the space, or else `network` (an ONNX file) or `kind` and "
                 "`params` (a kernel), and one with milliseconds (`ms`); 10 to 50 rows are enough");
    options.text("--query", query_, "CSV file of architectures, networks or kernels to predict, with the same columns");
    options.integer(
        "--advise", advise_, {.least = 0, .most = 1000},
        "Suggest this many architectures whose timing would help most, from --query or else from the space");
    options.text("--prior", prior_, "Your own prior (see `foretoken fit edge`) [the shipped one]");
    options.text("--out", out_, "Write the predictions to this CSV file");
    options.heading("Any networks (without --space)");
    device_.declare(options);
    graph_.declare(options);
    options.text("--predictor", predictor_,
                 "Write the adapted device to this JSON file, for `foretoken edge --device FILE`");
    options.footer(
        "Columns: nasbench201 and fbnet `ops`; ofa `ks`, `expand`, `res`; hat the ten averages of HAT's "
        "files.\ndocs/edge_adaptation.md describes the known devices and the accuracy of predictions.\nExamples:\n  "
        "foretoken adapt --space nasbench201 --advise 10\n  foretoken adapt --space nasbench201 --samples timings.csv "
        "--query archs.csv --advise 5\n  foretoken adapt --samples networks.csv --query others.csv --predictor "
        "mine.json");
  }

  Answer run(const Library& library) const override {
    if (space_.empty()) return of_networks(library);
    options_->refuse({"--device", "--fusion", "--bind", "--predictor"}, {}, "--space");
    const ArchitectureSpace& space = architecture_space(space_);
    const LatencyPrior prior = read_prior(space, library);
    AdaptationReport report{.space = &space};
    const std::vector<Timing> timings = samples_.empty() ? std::vector<Timing>{} : read_timings(space, prior, report);
    report.timings = timings.size();
    if (timings.empty() && (!query_.empty() || advise_ == 0)) {
      if (!samples_.empty()) fail_without_rows();
      throw InputError({.source = "--samples",
                        .value = "not given",
                        .expected = "timings, or --advise alone to learn which ones to take first"});
    }
    const std::optional<AdaptedDevice> device =
        timings.empty() ? std::nullopt : std::make_optional<AdaptedDevice>(prior, timings);
    if (device) report.resembles = device->resembles();
    if (timings.size() >= least_timings_to_leave_out) report.own_mape = leave_one_out_mape(prior, timings);

    const ArchitectureTable queries = query_.empty() ? ArchitectureTable{} : read_architectures(space, query_);
    for (size_t q = 0; q < queries.cells.size(); ++q)
      report.predicted.push_back(
          {.cells = queries.cells[q], .milliseconds = device->milliseconds(queries.features[q])});
    if (advise_ > 0) advise(prior, device, query_.empty() ? draw_architectures(space) : queries, report);
    Answer answer{.text = adaptation_text(report), .json = adaptation_json(report)};
    add_count_note(answer, timings.size());
    if (!out_.empty()) {
      write_file(out_, adaptation_csv(report));
      answer.text += fmt::format("wrote {} to {}\n", counted(report.predicted.size(), "prediction"), out_);
    }
    return answer;
  }

 private:
  [[noreturn]] void fail_without_rows() const {
    throw InputError({.source = samples_,
                      .value = "no timing",
                      .expected = "a row for each timing below the header: 10 to 50 rows are enough"});
  }

  void check_timings(size_t timings) const {
    constexpr size_t most_timings = 1000;  // time grows with their square or cube
    if (timings <= most_timings) return;
    throw InputError({.source = samples_,
                      .value = fmt::format("{} timings", timings),
                      .expected = fmt::format("at most {}", most_timings)});
  }

  Answer of_networks(const Library& library) const {
    options_->refuse_without("--space", {"--advise", "--prior"});
    if (samples_.empty()) {
      throw InputError({.source = "--samples",
                        .value = "not given",
                        .expected = "timings of networks or kernels, or --space and --advise to learn what to time"});
    }
    if (device_.is_hardware(library)) {
      throw InputError(
          {.source = "--device", .value = device_.device(), .expected = "a CPU with a measured sweep to start from"});
    }
    const EdgePredictor known = device_.predictor(library);
    const FusionRules rules = device_.fusion_rules(library);
    const NetworkTableContext context{.known = known, .rules = rules, .graph = graph_.options()};
    std::vector<EdgeTiming> timings;
    for (const NetworkRow& row : read_network_rows(samples_, context, true)) timings.push_back(row.timing);
    if (timings.empty()) fail_without_rows();
    check_timings(timings.size());
    const AdaptedEdge adapted(timings);
    NetworkAdaptationReport report{.known_device = device_.device(), .timings = timings.size(), .adapted = adapted};
    if (timings.size() >= least_timings_to_leave_out) report.own_mape = leave_one_out_mape(timings);
    if (!query_.empty()) {
      for (const NetworkRow& row : read_network_rows(query_, context, false))
        report.predicted.push_back({.name = row.name, .seconds = adapted.seconds(row.timing.known)});
    }
    Answer answer{.text = network_adaptation_text(report), .json = network_adaptation_json(report)};
    add_count_note(answer, timings.size());
    if (!out_.empty()) {
      write_file(out_, network_adaptation_csv(report));
      answer.text += fmt::format("wrote {} to {}\n", counted(report.predicted.size(), "prediction"), out_);
    }
    if (!predictor_.empty()) {
      write_file(predictor_, edge_predictor_json(adapted_predictor(known, adapted)));
      answer.text += fmt::format("wrote {}\n", predictor_);
    }
    return answer;
  }

  LatencyPrior read_prior(const ArchitectureSpace& space, const Library& library) const {
    const std::filesystem::path shipped = library.directory() / "edge" / "priors" / fmt::format("{}.json", space.name);
    LatencyPrior prior = read_latency_prior(prior_.empty() ? shipped : std::filesystem::path(prior_));
    if (prior.space->name == space.name) return prior;
    throw InputError({.source = "--prior",
                      .value = fmt::format("a prior of {}", prior.space->name),
                      .expected = fmt::format("one of {}", space.name)});
  }

  // Those that did not fail; the others go into the report.
  std::vector<Timing> read_timings(const ArchitectureSpace& space, const LatencyPrior& prior,
                                   AdaptationReport& report) const {
    const LatencyTable table = read_latency_table(space, samples_);
    if (table.devices.size() != 1) {
      throw InputError({.source = samples_,
                        .value = counted(table.devices.size(), "column") + " besides the architecture's",
                        .expected = "one column with milliseconds"});
    }
    const DeviceLatencies& latencies = table.devices.front();
    std::vector<Timing> timings;
    for (size_t i = 0; i < latencies.rows.size(); ++i) {
      timings.push_back(
          {.features = table.architectures.features[latencies.rows[i]], .milliseconds = latencies.milliseconds[i]});
    }
    check_timings(timings.size());
    const std::vector<size_t> failed = failed_timings(prior, timings);
    std::vector<Timing> kept;
    for (size_t i = 0; i < timings.size(); ++i) {
      if (!std::binary_search(failed.begin(), failed.end(), i)) {
        kept.push_back(std::move(timings[i]));
      } else {
        report.failed.push_back({.row = latencies.rows[i] + 1,
                                 .cells = table.architectures.cells[latencies.rows[i]],
                                 .milliseconds = latencies.milliseconds[i]});
      }
    }
    return kept;
  }

  static ArchitectureTable draw_architectures(const ArchitectureSpace& space) {
    ArchitectureTable table;
    RandomStream stream(0, "advised architectures");
    for (size_t c = 0; c < drawn_candidates; ++c) {
      table.cells.push_back(space.draw(stream));
      table.features.push_back(drawn_features(space, table.cells.back()));
    }
    return table;
  }

  void advise(const LatencyPrior& prior, const std::optional<AdaptedDevice>& device,
              const ArchitectureTable& candidates, AdaptationReport& report) const {
    const std::span<const std::vector<double>> features(candidates.features.data(),
                                                        std::min(candidates.features.size(), most_candidates));
    const auto count = static_cast<size_t>(advise_);
    for (const size_t c : device ? measure_next(*device, features, count) : measure_first(prior, features, count)) {
      report.measure_next.push_back({.cells = candidates.cells[c]});
      if (device) report.measure_next.back().milliseconds = device->milliseconds(features[c]);
    }
  }

  const Options* options_ = nullptr;
  EdgeFlags device_;
  GraphFlags graph_;
  std::string space_, samples_, query_, prior_, out_, predictor_;
  int64_t advise_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_adapt() {
  return std::make_unique<AdaptCommand>();
}

}  // namespace foretoken
