#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/grammar/command_line.h"
#include "app/cli/output/progress.h"
#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/accuracy/peer_report.h"

namespace foretoken {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A program of PATH; empty where there is none.
std::string program_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split_words(path == nullptr ? "" : path, ":")) {
    std::error_code error;
    const std::filesystem::path candidate = std::filesystem::path(folder) / name;
    if (std::filesystem::is_regular_file(candidate, error)) return candidate.string();
  }
  return "";
}

// Where Python would import the module from; empty where it cannot. Looked up without running the module.
std::string python_module_path(const std::string& module) {
  if (program_path("python3").empty()) return "";
  constexpr const char* look =
      "import importlib.util as u,sys;s=u.find_spec(sys.argv[1]);print(s.origin or s.name if s else '')";
  const std::vector<std::string> call = {"python3", "-c", look, module};
  std::string found;
  const int status = run_child(call, [&](std::string_view line) { found = line; }, {.most_seconds = 60});
  return status == 0 ? found : "";
}

// A peer that is looked for and not run.
struct DetectedPeer {
  const char* name;
  std::vector<std::string> programs, modules, checkouts;  // checkouts: usual names of its folder
  const char* why_not_run;
  const char* compared_in;  // the page of our documentation that compares
};

// Every tool of data/suite/tools but those that `bench peers` runs; a test compares the two lists.
std::vector<DetectedPeer> detected_peers() {
  return {
      {.name = "AIConfigurator",
       .programs = {"aiconfigurator"},
       .modules = {"aiconfigurator"},
       .checkouts = {"aiconfigurator"},
       .why_not_run = "it answers from its own measured tables, to which foretoken's kernels were fitted",
       .compared_in = "docs/suite.md"},
      {.name = "ASTRA-sim",
       .programs = {"AstraSim_Analytical_Congestion_Unaware", "AstraSim_Analytical_Congestion_Aware", "astra-sim"},
       .modules = {},
       .checkouts = {"astra-sim"},
       .why_not_run = "it needs your own workload, system and network files; `collective --astra-compatible` prints "
                      "what its analytical backends print",
       .compared_in = "docs/network.md"},
      {.name = "BLIS",
       .programs = {"blis", "simulation_worker"},
       .modules = {},
       .checkouts = {"inference-sim"},
       .why_not_run = "it needs coefficients that were fitted to the model, GPU and engine version in question",
       .compared_in = "docs/suite.md"},
      {.name = "Habitat",
       .programs = {},
       .modules = {},
       .checkouts = {"habitat"},
       .why_not_run = "it must first measure a PyTorch program on one of your GPUs",
       .compared_in = "docs/suite.md"},
      {.name = "LLMServingSim",
       .programs = {},
       .modules = {"llmservingsim"},
       .checkouts = {"LLMServingSim"},
       .why_not_run = "it needs operators that were profiled on the GPU in question, and runs in a container",
       .compared_in = "docs/accuracy/serving_runs.md"},
      {.name = "MAESTRO",
       .programs = {"maestro"},
       .modules = {},
       .checkouts = {"maestro"},
       .why_not_run = "it needs your own mapping and hardware files; `dataflow --mapping --hardware` reads both",
       .compared_in = "docs/accelerators/dataflow.md"},
      {.name = "mNPUsim",
       .programs = {"mnpusim"},
       .modules = {},
       .checkouts = {"mNPUsim"},
       .why_not_run = "it needs files of the array, the network and the memory, which foretoken does not read",
       .compared_in = "docs/suite.md"},
      {.name = "NeuSight",
       .programs = {},
       .modules = {"neusight"},
       .checkouts = {"NeuSight"},
       .why_not_run = "it needs its trained predictors and PyTorch; its published answers are among those of the suite",
       .compared_in = "docs/accuracy/steps.md"},
      {.name = "nn-Meter",
       .programs = {"nn-meter"},
       .modules = {"nn_meter"},
       .checkouts = {"nn-Meter"},
       .why_not_run = "its predictors are for three phone processors and a VPU, which foretoken does not describe",
       .compared_in = "docs/suite.md"},
      {.name = "SCALE-Sim v3",
       .programs = {},
       .modules = {"scalesim"},
       .checkouts = {"SCALE-Sim", "scale-sim-v3", "scale-sim-v2"},
       .why_not_run = "it needs files of the array and the layers; `systolic --config --topology` reads both",
       .compared_in = "docs/accelerators/systolic.md"},
      {.name = "uPIMulator",
       .programs = {"uPIMulator"},
       .modules = {},
       .checkouts = {"uPIMulator"},
       .why_not_run = "it runs compiled UPMEM programs; foretoken takes kernel sizes instead",
       .compared_in = "docs/accelerators/pim.md"},
      {.name = "VIDUR",
       .programs = {},
       .modules = {"vidur"},
       .checkouts = {"vidur"},
       .why_not_run = "it needs profiles of the model on the GPU in question",
       .compared_in = "docs/serving/checks.md"}};
}

class BenchPeers : public Command {
 public:
  void declare(Options& options) override {
    options.text("--calculon", calculon_, "Checkout of Calculon, whose own validation is run");
    options.list("--timeloop-files", timeloop_files_,
                 "Architecture, problem and energy tables (YAML) that both Timeloop and foretoken evaluate");
    options.text("--timeloop-mapping", timeloop_mapping_, "Mapping (YAML) of that problem");
    options.list("--checkouts", checkouts_,
                 "Folders that hold checkouts of other tools, each under its usual name, for example ~/src,/opt");
    options.number("--seconds", most_seconds_, {.least = 1, .most = 86400}, "Maximum duration of one peer, in seconds");
    options.footer(
        "Looks for other prediction tools on this machine, runs those it has common work for, and prints the ratio of "
        "times and\nthe errors of both. docs/performance.md has what was measured earlier.\nExamples:\n  foretoken "
        "bench peers\n  foretoken bench peers --calculon ~/calculon");
  }

  Answer run(const Library& library) const override {
    for (const std::string& folder : checkouts_) {
      if (!std::filesystem::is_directory(folder)) {
        throw InputError({.source = "--checkouts", .value = printable(folder), .expected = "a folder"});
      }
    }
    std::vector<PeerRun> runs = {calculon(library), timeloop(library)};
    for (const DetectedPeer& peer : detected_peers()) {
      runs.push_back({.name = peer.name, .found = place_of(peer), .compared_in = peer.compared_in});
      if (!runs.back().found.empty()) runs.back().not_run = peer.why_not_run;
    }
    return {.text = peers_text(runs), .json = peers_json(runs)};
  }

 private:
  std::string checkout_of(const std::vector<std::string>& names) const {
    for (const std::string& folder : checkouts_) {
      for (const std::string& name : names) {
        const std::filesystem::path checkout = std::filesystem::path(folder) / name;
        if (std::filesystem::is_directory(checkout)) return checkout.string();
      }
    }
    return "";
  }

  std::string place_of(const DetectedPeer& peer) const {
    for (const std::string& program : peer.programs) {
      if (const std::string found = program_path(program); !found.empty()) return found;
    }
    for (const std::string& module : peer.modules) {
      if (const std::string found = python_module_path(module); !found.empty()) return found;
    }
    return checkout_of(peer.checkouts);
  }

  // Its table 5: four Megatron models with selective recomputation, which cards of the suite ask for, measured.
  PeerRun calculon(const Library& library) const {
    PeerRun run{.name = "Calculon",
                .work =
                    "four Megatron runs on A100s (arXiv 2205.05198, table 5); its time is that of its whole "
                    "validation, 36 runs",
                .compared_in = "docs/performance/more.md"};
    const std::filesystem::path folder = calculon_.empty() ? "" : std::filesystem::path(calculon_);
    if (!calculon_.empty() && !std::filesystem::exists(folder / "bin" / "calculon")) {
      throw InputError({.source = "--calculon",
                        .value = printable(calculon_),
                        .expected = "a checkout of Calculon, with bin/calculon"});
    }
    run.found = calculon_.empty() ? python_module_path("calculon") : calculon_;
    if (run.found.empty()) return run;
    if (calculon_.empty()) {
      run.not_run = "give its checkout with --calculon, which has the validation files";
      return run;
    }
    show_progress("Calculon");
    std::vector<std::string> lines;
    const std::vector<std::string> call = {"python3", (folder / "bin" / "calculon").string(), "llm-validation", "-b",
                                           calculon_};
    int status = 0;
    run.peer_seconds = seconds_of([&] {
      status =
          run_child(call, [&](std::string_view line) { lines.emplace_back(line); }, {.most_seconds = most_seconds_});
    });
    if (status != 0) {
      run.not_run = fmt::format("it ended with status {}: {}", status, lines.empty() ? "" : printable(lines.back()));
      return run;
    }
    run.own_seconds = seconds_of([&] { run.figures = calculon_figures(lines, library); });
    if (run.figures.empty()) run.not_run = "its table of times was not found in its output";
    return run;
  }

  static std::vector<PeerFigure> calculon_figures(const std::vector<std::string>& lines, const Library& library) {
    // "megatron-22B,|,1.42,1.40,1.72%,48.15,|,1.1,1.14,-3.33%,52.08,": measured and predicted, full and selective.
    constexpr size_t cells_of_a_run = 11, measured_cell = 7, predicted_cell = 8;
    const std::vector<std::pair<std::string_view, std::string>> cards = {
        {"megatron-22B", "N20"}, {"gpt3-175B", "T3.1"}, {"turing-530B", "N21"}, {"megatron-1T", "T3.3"}};
    std::vector<PeerFigure> figures;
    for (const std::string& line : lines) {
      const std::vector<std::string_view> cells = split(line, ",");
      if (cells.size() < cells_of_a_run) continue;
      for (const auto& [model, card] : cards) {
        const auto measured = parse_number(cells[measured_cell]), predicted = parse_number(cells[predicted_cell]);
        if (cells[0] != model || !measured || !predicted) continue;
        const Json answer = answer_command({"suite", "--only", card}, library).json;
        const JsonView scenario = JsonView(answer, "suite").at("scenarios").items().at(0);
        figures.push_back({.name = card,
                           .own = scenario.at("answer").at("value").number(),
                           .peer = *predicted,
                           .measured = *measured});
      }
    }
    return figures;
  }

  PeerRun timeloop(const Library& library) const {
    PeerRun run{.name = "Timeloop",
                .work = "cycles of a given mapping",
                .found = program_path("timeloop-model"),
                .compared_in = "docs/performance/more.md"};
    if (timeloop_files_.empty() != timeloop_mapping_.empty()) {
      throw InputError({.source = timeloop_files_.empty() ? "--timeloop-files" : "--timeloop-mapping",
                        .expected = "both --timeloop-files and --timeloop-mapping"});
    }
    if (run.found.empty()) return run;
    if (timeloop_files_.empty()) {
      run.not_run = "give --timeloop-files and --timeloop-mapping";
      return run;
    }
    show_progress("Timeloop");
    // It writes its statistics where it runs, so it is told a folder of its own.
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() /
        fmt::format("foretoken_peers_{}", std::chrono::steady_clock::now().time_since_epoch().count());
    std::filesystem::create_directories(folder);
    std::vector<std::string> call = {run.found};
    call.insert(call.end(), timeloop_files_.begin(), timeloop_files_.end());
    call.insert(call.end(), {timeloop_mapping_, "-o", folder.string()});
    int status = 0;
    run.peer_seconds =
        seconds_of([&] { status = run_child(call, [](std::string_view) {}, {.most_seconds = most_seconds_}); });
    const std::filesystem::path stats = folder / "timeloop-model.stats.txt";
    if (status != 0 || !std::filesystem::exists(stats)) {
      run.not_run = fmt::format("it ended with status {} and left no statistics", status);
    } else {
      constexpr size_t most_stats_bytes = size_t{16} << 20;
      const std::string text = read_file(stats, most_stats_bytes);
      for (const std::string_view line : split_words(text, "\n")) {
        const auto cycles = line.starts_with("Cycles: ") ? parse_number(line.substr(8)) : std::nullopt;
        if (!cycles) continue;
        Json own;
        run.own_seconds = seconds_of([&] {
          own = answer_command({"accel", "--arch", fmt::format("{}", fmt::join(timeloop_files_, ",")), "--mapping",
                                timeloop_mapping_},
                               library)
                    .json;
        });
        run.figures = {{.name = "cycles", .own = JsonView(own, "accel").at("cycles").number(), .peer = *cycles}};
        break;
      }
      if (run.figures.empty()) run.not_run = "its statistics have no line `Cycles:`";
    }
    std::filesystem::remove_all(folder);
    return run;
  }

  std::string calculon_, timeloop_mapping_;
  std::vector<std::string> timeloop_files_, checkouts_;
  double most_seconds_ = 600;
};

class BenchCommand : public Command {
 public:
  void declare(Options& options) override {
    peers_.declare(
        options.subcommand("peers", "Run the other prediction tools installed on this machine on the same work"));
  }
  Answer run(const Library& library) const override { return peers_.run(library); }

 private:
  BenchPeers peers_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<BenchCommand>();
}

}  // namespace foretoken
