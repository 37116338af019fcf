#include <fmt/format.h>

#include <thread>

#include "accelerator/device/designed_device.h"
#include "accelerator/formats/problem_json.h"
#include "accelerator/formats/timeloop_output.h"
#include "accelerator/mapper/mapper.h"
#include "accelerator/mapping_text.h"
#include "accelerator/sparse/description_file.h"
#include "accelerator/sparse/sparse_evaluator.h"
#include "accelerator/sparse/sparse_search.h"
#include "accelerator/sparse/timeloop_sparsity.h"
#include "accelerator/workload/fusion.h"
#include "app/cli/commands/list.h"
#include "app/cli/flags/accelerator_flags.h"
#include "app/cli/output/progress.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "report/chip/accelerator_network_report.h"
#include "report/chip/accelerator_report.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

class AccelCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.flag("--list", list_, "List the designs and networks that ship");
    flags_.declare(options);
    options.heading("Search");
    options.text(
        "--objective", objective_,
        "What to minimize: energy, delay, latency, edp (energy x delay), or two of them, for example delay,energy");
    options.integer("--tries", tries_, {.least = 0, .most = int64_t{1} << 40},
                    "Number of mappings to try in each search; the same number and seed give the same result. 0 = "
                    "300,000 for one operator, 50,000 per layer of a network, 3,000 per way to fuse layers");
    options.number("--time-limit", time_limit_, {.least = 0, .most = 1e6},
                   "Stop each search after this many CPU seconds with the best mapping so far; 0 = no limit");
    options.integer("--threads", threads_, {.least = 0, .most = 1024}, "Number of CPU threads; 0 = all cores");
    options.integer("--seed", seed_, {.least = 0}, "Random seed of the search");
    options.choice("--remainders", remainders_, {"never", "few", "always"},
                   "Whether loops may leave a remainder: never, few = only for dimensions with few divisors, always");
    options.flag("--pareto", pareto_, "Also show the mappings that trade energy for cycles");
    options.flag("--timeloop-rules", timeloop_rules_,
                 "Count as Timeloop does: idle instances also read, and only storage in use leaks");
    options.heading("Beyond one dense layer");
    options.text("--fuse", fuse_,
                 "With --network or --model: keep intermediate tensors, such as the scores of attention, at this "
                 "memory level when that saves energy or time");
    options.integer("--fuse-layers", fuse_layers_, {.least = 2, .most = 16},
                    "With --fuse: maximum number of layers to fuse");
    options.text("--sparsity", sparsity_,
                 "JSON file with the sparsity of the tensors, for a network also by layer, and how each level exploits "
                 "it; mappings are then ranked by cycles and energy with zeros");
    options.heading("Output");
    options.text("--csv", csv_, "Write the traffic of every tensor and level, or of every layer, to this file");
    options.text("--svg", svg_, "Plot energy by level and utilization in this SVG file");
    options.text("--html", html_, "Write an HTML report with the figures, the table and the loop nest");
    options.text(
        "--map", map_,
        "Write the mapping to this file: foretoken's JSON if the name ends in .json, otherwise Timeloop's YAML");
    options.text("--stats", stats_, "Write the result to this file in the format of Timeloop's stats");
    options.text("--device-file", device_file_,
                 "Write the design as a device file, for --device of step, train and serve");
    options.footer(
        "Examples:\n"
        "  foretoken accel --arch gemm_array_16x16 --gemm 128x3072x768\n"
        "  foretoken accel --arch eyeriss_168_timeloop --conv 3x64x224x224x7x2 --objective delay,energy --svg a.svg\n"
        "  foretoken accel --arch eyeriss_v1 --network resnet50 --objective energy\n"
        "  foretoken accel --arch arch.yaml,problem.yaml,ert.yaml --mapping map.yaml --stats out.stats.txt\n"
        "  foretoken accel --arch tpu_v4 --gemm 1024x1024x1024 --device-file my_chip.json\n"
        "Without --mapping, mappings are searched under the constraints; the gap to a proven bound is printed.");
  }

  Answer run(const Library& library) const override {
    if (list_) {
      options_->allow_only({"--list"}, {}, "--list");
      return listed(library);
    }
    refuse_unused_flags();
    AcceleratorQuestion question = flags_.question(library);
    if (!question.problem && question.timeloop.sparse_optimizations) {
      question.notes.emplace_back(
          "sparse_optimizations in the files are ignored for networks; describe densities, formats and skipping with "
          "--sparsity");
    }
    if (!device_file_.empty()) write_device(question);
    Answer answer = question.problem ? one(question) : network(question);
    constexpr size_t most_notes = 3;
    for (size_t i = 0; i < std::min(most_notes, question.notes.size()); ++i) {
      answer.text += "note: " + question.notes[i] + "\n";
    }
    if (question.notes.size() > most_notes) {
      answer.text += fmt::format("and {} more in --json\n", counted(question.notes.size() - most_notes, "note"));
    }
    answer.text = wrap_lines(answer.text, accelerator_page_width, 2);
    if (!device_file_.empty())
      answer.text += fmt::format("wrote {}: use it as --device {}\n", device_file_, device_file_);
    Json notes = Json::array();
    for (const std::string& note : question.notes) notes.push(note);
    answer.json.set("notes", std::move(notes));
    return answer;
  }

 private:
  // A flag that would change nothing is a mistake about what it does.
  void refuse_unused_flags() const {
    const std::vector<std::string> search = {"--objective", "--tries",      "--time-limit", "--threads",
                                             "--seed",      "--remainders", "--pareto"};
    flags_.refuse_unused(*options_);
    if (!flags_.mapping.empty()) {
      options_->refuse(search, {}, "--mapping");
      options_->refuse({"--constraints"}, {}, "--mapping");
    }
    if (fuse_.empty()) options_->refuse({"--fuse-layers"}, {}, "layers that run apart");
    if (!flags_.layers.network.empty() || !flags_.model.empty()) {
      options_->refuse({"--pareto", "--mapping", "--svg", "--html", "--map", "--stats"}, {}, "several layers");
    }
    if (!fuse_.empty()) options_->refuse({"--csv", "--sparsity"}, {}, "--fuse");
  }

  static Answer listed(const Library& library) {
    const std::filesystem::path folder = library.directory() / "accelerators";
    const AcceleratorCatalogue catalogue = library.accelerator_designs();
    Table table({{.title = "design", .align = Table::Align::left},
                 {.title = "multipliers"},
                 {.title = "levels"},
                 {.title = "what it is", .align = Table::Align::left}});
    Json designs = Json::array();
    for (const std::string& name : catalogue.design_names()) {
      const AcceleratorDesign design = catalogue.design(name).design;
      const int64_t multipliers = instances(design.architecture.levels.back());
      table.add(
          {name, fmt::format("{}", multipliers), fmt::format("{}", design.architecture.levels.size()), design.summary});
      designs.push(Json::object({{"name", name}, {"multipliers", multipliers}, {"summary", design.summary}}));
    }
    std::vector<std::string> networks;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "networks")) {
      networks.push_back(entry.path().stem().string());
    }
    std::sort(networks.begin(), networks.end());
    Json names = Json::array();
    for (const std::string& name : networks) names.push(name);
    return {.text = table.text(accelerator_page_width) +
                    wrap_lines(fmt::format("\nnetworks: {}\n", fmt::join(networks, ", ")), accelerator_page_width, 2),
            .json = Json::object({{"designs", std::move(designs)}, {"networks", std::move(names)}})};
  }

  MapperOptions mapper_options(int64_t usual_tries) const {
    MapperOptions options{.objective = objective_named(objective_, "--objective"),
                          .most_tries = tries_ > 0 ? tries_ : usual_tries};
    if (time_limit_ > 0) options.time_limit_seconds = time_limit_;
    options.threads =
        threads_ > 0 ? static_cast<unsigned>(threads_) : std::max(1U, std::thread::hardware_concurrency());
    options.seed = static_cast<uint64_t>(seed_);
    options.remainders = remainders_ == "never" ? Remainders::never
                         : remainders_ == "few" ? Remainders::where_divisors_are_few
                                                : Remainders::always;
    if (timeloop_rules_) options.rules = timeloop_rules;
    options.frontier = pareto_;
    options.progress = [](const MapperProgress& progress) {
      show_progress(fmt::format("{} mappings tried, best {:.4g}, bound {:.4g}", progress.tried,
                                progress.found ? progress.best : 0, progress.bound));
    };
    return options;
  }

  bool has_zeros(const AcceleratorQuestion& question) const {
    return !sparsity_.empty() || question.timeloop.sparse_optimizations.has_value();
  }

  FoundMapping given(const AcceleratorQuestion& question) const {
    // Tiles may fit only when they are compressed; the sparse evaluation looks at that.
    const Architecture architecture =
        has_zeros(question) ? without_capacities(question.design.architecture) : question.design.architecture;
    const std::vector<std::string> faults = mapping_faults(*question.mapping, architecture, *question.problem);
    if (!faults.empty()) {
      throw InputError({.source = flags_.mapping.empty() ? "the mapping" : flags_.mapping,
                        .value = faults.front(),
                        .expected = faults.size() == 1
                                        ? std::string("a mapping that can run")
                                        : fmt::format("a mapping that can run; also: {}",
                                                      fmt::join(faults.begin() + 1, faults.end(), "; "))});
    }
    FoundMapping found{.mapping = *question.mapping};
    const MappingEvaluator evaluator(architecture, *question.problem,
                                     timeloop_rules_ ? timeloop_rules : EvaluationRules());
    ensure(evaluator.evaluate(found.mapping, found.evaluation), "a mapping without faults is evaluated");
    return found;
  }

  MapperResult searched(const AcceleratorQuestion& question, const MapperOptions& options) const {
    const Architecture& architecture = question.design.architecture;
    const Problem& problem = *question.problem;
    const Constraints constraints = question.constraints_for(problem);
    if (!has_zeros(question)) return search_mappings(architecture, problem, constraints, options);
    return search_sparse_mappings(architecture, problem, constraints, options, zeros_of(question), sparse_rules());
  }

  Answer one(const AcceleratorQuestion& question) const {
    const Architecture& architecture = question.design.architecture;
    const Problem& problem = *question.problem;
    if (!fuse_.empty()) throw InputError({.source = "--fuse", .expected = "several layers: --network"});
    std::optional<MapperResult> search;
    FoundMapping found;
    if (question.mapping) {
      found = given(question);
    } else {
      search = searched(question, mapper_options(300'000));
      if (!search->best) {
        throw InputError({.source = architecture.name, .value = problem.name, .expected = search->reason});
      }
      found = *search->best;
    }
    const MappingReport report{architecture, problem, found.mapping, found.evaluation};
    Answer answer{.text = mapping_report_text(report), .json = mapping_report_json(report)};
    if (search) add_search(*search, has_zeros(question), answer);
    if (has_zeros(question)) add_sparsity(question, found, answer);
    const auto write = [&](const std::string& file, const std::string& content) {
      if (file.empty()) return;
      write_file(file, content);
      answer.text += fmt::format("wrote {}\n", file);
    };
    write(csv_, mapping_report_csv(report));
    write(svg_, mapping_report_svg(report));
    write(html_, mapping_report_html(report));
    if (!map_.empty()) {
      const bool as_json = map_.ends_with(".json");
      write(map_, as_json ? mapping_json(found.mapping, architecture, problem).dump(2) + "\n"
                          : timeloop_map_yaml(found.mapping, architecture, problem));
    }
    write(stats_, timeloop_stats_text(found.evaluation, found.mapping, architecture, problem));
    return answer;
  }

  static std::string proven_text(const MapperResult& search, bool with_zeros) {
    if (with_zeros) return "ranked with zeros, for which no bound is known";
    if (search.exhausted) return "all were looked at: this is the best";
    if (search.gap < 5e-4) return "none is better (proven bound)";
    return fmt::format("the optimum is at most {:.1f}% better (proven bound)", 100 * search.gap);
  }

  static void add_search(const MapperResult& search, bool with_zeros, Answer& answer) {
    answer.text +=
        fmt::format("\nSearch: {} mappings tried, {} fit, of about 2^{:.0f}; {}{}\n", search.tried, search.evaluations,
                    search.log2_points, proven_text(search, with_zeros),
                    search.out_of_time ? "; stopped by the time limit, a rerun may give another mapping" : "");
    Json json = Json::object({{"tried", search.tried},
                              {"evaluations", search.evaluations},
                              {"log2_points", search.log2_points},
                              {"bound", search.bound > 0 ? Json(search.bound) : Json()},
                              {"gap", search.bound > 0 ? Json(search.gap) : Json()},
                              {"exhausted", search.exhausted},
                              {"out_of_time", search.out_of_time}});
    if (!search.frontier.empty()) {
      Json frontier = Json::array();
      Table table({{.title = "cycles"}, {.title = "energy"}});
      for (const FoundMapping& point : search.frontier) {
        frontier.push(Json::object({{"cycles", point.costs.cycles}, {"energy_pj", point.costs.energy_pj}}));
        table.add({fmt::format("{:.0f}", point.costs.cycles), picojoule_text(point.costs.energy_pj)});
      }
      json.set("frontier", std::move(frontier));
      answer.text += "\nEnergy against cycles:\n" + table.text();
    }
    answer.json.set("search", std::move(json));
  }

  SparsityDescription zeros_of(const AcceleratorQuestion& question) const {
    if (sparsity_.empty()) return timeloop_sparsity(question.timeloop);
    const Json document = read_json_file(sparsity_);
    return read_sparsity(JsonView(document, sparsity_), question.design.architecture, *question.problem);
  }

  SparseRules sparse_rules() const { return timeloop_rules_ ? sparseloop_rules : SparseRules(); }

  void add_sparsity(const AcceleratorQuestion& question, const FoundMapping& found, Answer& answer) const {
    const Architecture& architecture = question.design.architecture;
    const SparseEvaluation result = evaluate_sparse(architecture, *question.problem, found.mapping, found.evaluation,
                                                    zeros_of(question), sparse_rules());
    for (size_t i = 0; i < result.levels.size() && i + 1 < architecture.levels.size(); ++i) {
      if (result.levels[i].fits) continue;
      throw InputError({.source = "the mapping",
                        .value = architecture.levels[i].name,
                        .expected = "room for its fullest tiles, also compressed"});
    }
    answer.text += fmt::format(
        "\nWith zeros: {:.0f} cycles ({:.2f} of dense), {} ({:.2f} of "
        "dense); {:.4g} multiplications, {:.4g} gated, "
        "{:.4g} skipped\n",
        result.cycles, result.cycles / found.evaluation.cycles, picojoule_text(result.energy_pj),
        result.energy_pj / found.evaluation.energy_pj, result.operations.actual, result.operations.gated,
        result.operations.skipped);
    answer.json.set("sparse", sparse_json(result));
  }

  static constexpr int64_t layer_tries = 50'000;  // of each layer of a network

  // `file` and `architecture` must outlive what is returned. Layers with densities of their own are marked.
  NetworkZeros network_zeros(const Json& file, const Architecture& architecture,
                             std::vector<AcceleratorLayer>& layers) const {
    const JsonView view(file, sparsity_);
    std::vector<NamedProblem> problems;
    for (AcceleratorLayer& layer : layers) {
      problems.push_back({.name = layer.name, .problem = &layer.problem});
      if (has_own_densities(view, layer.name)) layer.zeros = layer.name;
    }
    check_network_sparsity(view, problems);
    return {.of_layer =
                [view, &architecture](const AcceleratorLayer& layer) {
                  return read_layer_sparsity(view, architecture, layer.name, layer.problem);
                },
            .rules = sparse_rules()};
  }

  Answer network(const AcceleratorQuestion& question) const {
    const Architecture& architecture = question.design.architecture;
    const ConstraintsFor constraints = [&](const Problem& problem) { return question.constraints_for(problem); };
    if (!fuse_.empty()) return fused(question, constraints);
    const std::optional<Json> zeros = sparsity_.empty() ? std::nullopt : std::optional(read_json_file(sparsity_));
    std::vector<AcceleratorLayer> layers = question.layers;
    const NetworkZeros of_layers = zeros ? network_zeros(*zeros, architecture, layers) : NetworkZeros();
    const NetworkMap map =
        map_network(architecture, std::move(layers), constraints, mapper_options(layer_tries), of_layers);
    if (!csv_.empty()) write_file(csv_, network_map_csv(map, architecture));
    return with_vector_work({.text = network_map_text(map, architecture), .json = network_map_json(map, architecture)},
                            question);
  }

  Answer fused(const AcceleratorQuestion& question, const ConstraintsFor& constraints) const {
    const Architecture& architecture = question.design.architecture;
    const int level = find_level(architecture, fuse_);
    if (level < 1 || level + 1 >= std::ssize(architecture.levels) ||
        architecture.levels[level].kind != LevelKind::storage) {
      throw InputError({.source = "--fuse",
                        .value = fuse_,
                        .expected = "a level of storage inside the chip",
                        .suggestion = nearest_name(fuse_, level_names(architecture)).value_or("")});
    }
    const FusionOptions options{.mapper = mapper_options(3'000),
                                .alone_tries = tries_ > 0 ? tries_ : layer_tries,
                                .level = level,
                                .most_layers = static_cast<size_t>(fuse_layers_)};
    const FusionResult result = fuse_layers(architecture, question.to_fuse, constraints, options);
    return with_vector_work({.text = fusion_text(result, question.to_fuse, architecture),
                             .json = fusion_json(result, question.to_fuse, architecture)},
                            question);
  }

  static Answer with_vector_work(Answer answer, const AcceleratorQuestion& question) {
    VectorSummary summary = vector_summary(question.beside, question.design.architecture);
    answer.text += summary.text;
    if (!summary.text.empty()) answer.json.set("vector", std::move(summary.json));
    return answer;
  }

  void write_device(const AcceleratorQuestion& question) const {
    write_file(device_file_, device_json(question.design).dump(2) + "\n");
  }

  const Options* options_ = nullptr;
  AcceleratorFlags flags_;
  std::string objective_ = "edp", remainders_ = "few", fuse_, sparsity_;
  std::string csv_, svg_, html_, map_, stats_, device_file_;
  int64_t tries_ = 0, threads_ = 0, seed_ = 1, fuse_layers_ = 3;
  double time_limit_ = 0;
  bool list_ = false, pareto_ = false, timeloop_rules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_accel() {
  return std::make_unique<AccelCommand>();
}

}  // namespace foretoken
