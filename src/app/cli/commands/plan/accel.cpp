#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/flags/accelerator_flags.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "plan/accelerator/accelerator_plan.h"
#include "report/chip/accelerator_plan_report.h"

namespace foretoken {
namespace {

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const SearcherKind& kind : all_searchers()) names.emplace_back(kind.name);
  return names;
}

class PlanAccelCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("Designs");
    options.texts("--knob", knobs_,
                  "A number to change and its values, may be repeated: GLB.capacity=32K,64K; also depth, x and y (how "
                  "many in the level around it), bandwidth (words per cycle), all.word-bits. None: sizes a quarter to "
                  "four times, sides of arrays and the outermost bandwidth half to twice");
    options.number("--most-area", most_area_, {.least = 0, .most = 1e6},
                   "Maximum area in mm2: storage, multipliers and the memory interface; 0 = no limit");
    options.number("--most-power", most_power_, {.least = 0, .most = 1e6}, "Maximum mean power in W; 0 = no limit");
    options.heading("Search");
    options.text("--objective", objective_,
                 "What to minimize: energy, delay, latency, edp (energy x delay), or the frontier of two, for example "
                 "delay,energy");
    options.choice("--method", method_, method_names(), "Search method");
    options.flag("--compare", compare_,
                 "Compare all methods with the same budget; includes the exhaustive search if the budget allows it");
    options.integer("--evaluations", evaluations_, {.least = 1, .most = 1'000'000},
                    "Number of designs that each method evaluates");
    options.integer("--tries", tries_, {.least = 1, .most = int64_t{1} << 40},
                    "Number of mappings to try per layer while searching designs");
    options.integer("--final-tries", final_tries_, {.least = 1, .most = int64_t{1} << 40},
                    "At most for the base and the finalists, whose figures are shown; a layer's search ends earlier "
                    "when it gains nothing more");
    options.integer("--finalists", finalists_, {.least = 1, .most = 100},
                    "Number of designs to evaluate again at the end, per objective");
    options.integer("--seed", seed_, {.least = 0}, "Random seed of the search");
    options.integer(
        "--seeds", seeds_, {.least = 1, .most = 1000},
        "With --compare: searches of each method, with seeds from --seed on; the table then shows medians and "
        "quartiles");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The result does not depend on it");
    options.heading("Output");
    options.text("--csv", csv_, "Write every evaluated design to this CSV file");
    options.text("--svg", svg_, "Plot the best objective so far against the number of designs in this SVG file");
    options.text("--html", html_, "Write an HTML report with the answer, figures and tables");
    options.text("--out-design", out_design_, "Write the best design to this file, for `foretoken accel --arch FILE`");
    options.footer(
        "Energies and areas of changed sizes: those the design gives grow as the library's do, others are the "
        "library's.\n"
        "Examples:\n"
        "  foretoken plan accel --arch eyeriss_v1 --network resnet50 --most-area 20 --evaluations 200\n"
        "  foretoken plan accel --arch gemm_array_16x16 --gemm 128x3072x768 --compare --evaluations 60\n"
        "  foretoken plan accel --arch gemm_array_16x16 --gemm 128x3072x768 --knob GLB.capacity=32K,64K,128K\n"
        "      --knob RF.x=8,16,32 --method exhaustive --out-design best.json");
  }

  Answer run(const Library& library) const override {
    options_->refuse({"--mapping"}, {}, "a search of designs");
    if (compare_) options_->refuse({"--method"}, {}, "--compare");
    if (!compare_) options_->refuse({"--seeds"}, {}, "one search (--compare has several)");
    flags_.refuse_unused(*options_);
    AcceleratorQuestion asked = flags_.question(library);
    if (asked.timeloop.sparse_optimizations) {
      throw InputError({.source = "--arch", .value = "sparse_optimizations", .expected = "a dense design to change"});
    }
    const AcceleratorCatalogue catalogue = library.accelerator_designs();
    const DesignSpace space(asked.design, knobs(asked.design.architecture), catalogue.library());
    const AcceleratorPlanQuestion question = plan_question(asked, space);
    const AcceleratorPlan plan = plan_accelerator(question, space, show_progress);
    const AcceleratorPlanReport report{
        .plan = plan, .space = space, .question = question, .work = work_name(asked), .command = options_->line()};
    Answer answer{.text = accelerator_plan_text(report),
                  .json = accelerator_plan_json(report),
                  .failure = accelerator_plan_failure(report)};
    const auto write = [&](const std::string& file, const std::string& content) {
      if (file.empty()) return;
      write_file(file, content);
      answer.text += fmt::format("wrote {}\n", file);
    };
    write(csv_, accelerator_plan_csv(report));
    write(svg_, learning_curve_svg(report));
    write(html_, with_flag_names(accelerator_plan_html(report)));
    if (plan.winner() != nullptr) {
      write(out_design_, architecture_json(named_design(space, plan.winner()->point)).dump(2) + "\n");
    }
    return answer;
  }

 private:
  std::vector<Knob> knobs(const Architecture& base) const {
    if (knobs_.empty()) return automatic_knobs(base);
    std::vector<Knob> all;
    for (const std::string& text : knobs_) all.push_back(parse_knob("--knob", text, base));
    return all;
  }

  AcceleratorPlanQuestion plan_question(const AcceleratorQuestion& asked, const DesignSpace& space) const {
    const MappingObjective objective = objective_named(objective_, "--objective");
    AcceleratorPlanQuestion question{
        .work = {.layers = asked.layers,
                 .constraints = [&asked](const Problem& problem) { return asked.constraints_for(problem); },
                 .mapper = {.objective = objective,
                            .most_tries = tries_,
                            .threads = threads_to_use(threads_),
                            .seed = static_cast<uint64_t>(seed_)}},
        .objective = {.metrics = {objective.first}},
        .budget = {.evaluations = static_cast<size_t>(evaluations_)},
        .methods = methods(space),
        .seed = static_cast<uint64_t>(seed_),
        .seeds = static_cast<size_t>(seeds_),
        .finalists = static_cast<size_t>(finalists_),
        .final_tries = final_tries_};
    if (asked.problem) question.work.layers = {{.name = asked.problem->name, .problem = *asked.problem}};
    if (objective_.find(',') != std::string::npos) {
      if (objective.first == objective.second) {
        throw InputError({.source = "--objective", .value = objective_, .expected = "two that differ"});
      }
      question.objective.metrics.push_back(objective.second);
      question.work.mapper.objective = {};  // between the two: energy times delay
    }
    if (most_area_ > 0) question.work.limits.area_mm2 = most_area_;
    if (most_power_ > 0) question.work.limits.watts = most_power_;
    return question;
  }

  std::vector<std::string> methods(const DesignSpace& space) const {
    if (!compare_) return {method_};
    std::vector<std::string> all = method_names();
    if (space.grid().size() > static_cast<double>(evaluations_)) std::erase(all, "exhaustive");
    return all;
  }

  std::string work_name(const AcceleratorQuestion& asked) const {
    if (asked.problem) return asked.problem->name;
    return flags_.model.empty() ? std::filesystem::path(flags_.layers.network).stem().string() : flags_.model;
  }

  static AcceleratorDesign named_design(const DesignSpace& space, const DesignPoint& point) {
    AcceleratorDesign design = space.design(point);
    design.summary = fmt::format("{} with {}", design.architecture.name, space.changes_text(point));
    design.architecture.name += "_changed";
    design.sources.push_back(
        "sizes: a search of designs; energies and areas that the base gives, scaled to new sizes "
        "as the library's");
    return design;
  }

  const Options* options_ = nullptr;
  AcceleratorFlags flags_;
  std::vector<std::string> knobs_;
  std::string objective_ = "edp", method_ = "bayesian";
  std::string csv_, svg_, html_, out_design_;
  int64_t evaluations_ = 200, tries_ = 2000, final_tries_ = 100'000, finalists_ = 3, seed_ = 1, seeds_ = 1,
          threads_ = 0;
  double most_area_ = 0, most_power_ = 0;
  bool compare_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_accel() {
  return std::make_unique<PlanAccelCommand>();
}

}  // namespace foretoken
