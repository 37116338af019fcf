#include "plan/serving/stored_evaluator.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "plan/serving/plan_result_json.h"
#include "plan/store/shared_work.h"

namespace foretoken {
namespace {

// What was written by other means than ours is complained of with this name.
constexpr const char* source_name = "store";

// Places of layouts whose judgements are one result, since each of them takes less time than to write it down.
std::vector<std::vector<size_t>> judged_together(std::span<const ServingLayout> layouts) {
  constexpr size_t most_results = 48;
  std::vector<std::vector<size_t>> all;
  for (const std::vector<size_t>& group : layouts_by_engines(layouts)) {
    if (all.empty() || all.back().size() * most_results >= layouts.size()) all.emplace_back();
    all.back().insert(all.back().end(), group.begin(), group.end());
  }
  return all;
}

class StoredEvaluator final : public PlanEvaluator {
 public:
  StoredEvaluator(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic, unsigned threads,
                  ResultStore& store, int64_t processes)
      : question_(question), store_(store), processes_(processes) {
    for (unsigned i = 0; i < std::max(1U, threads); ++i) {
      workers_.push_back(std::make_unique<Worker>(question, facts, traffic));
    }
  }

  std::vector<LayoutJudgement> judge(std::span<const ServingLayout> layouts) override {
    const std::vector<std::vector<size_t>> places = judged_together(layouts);
    std::vector<std::vector<ServingLayout>> groups;
    std::vector<std::string> keys;
    for (const std::vector<size_t>& members : places) {
      groups.emplace_back();
      std::string all;
      for (const size_t i : members) {
        groups.back().push_back(layouts[i]);
        all += layouts[i].key() + "\n";
      }
      // The number changes with what is kept, so that older entries are not read.
      keys.push_back(fmt::format("bounds 4 of {} layouts {:016x}", members.size(), digest(all)));
    }
    const std::vector<std::string> results = shared(keys, threads(), [&](LayoutSimulator& simulator, size_t i) {
      Json judgements = Json::array();
      for (const ServingLayout& layout : groups[i]) judgements.push(judgement_json(simulator.judge(layout)));
      return judgements;
    });
    std::vector<LayoutJudgement> judgements(layouts.size());
    for (size_t group = 0; group < groups.size(); ++group) {
      const Json json = parse_json(results[group], source_name);
      const JsonView view(json, source_name, keys[group]);
      const std::vector<JsonView> items = view.items();
      if (items.size() != places[group].size()) view.fail("a judgement of each layout");
      for (size_t i = 0; i < items.size(); ++i) judgements[places[group][i]] = read_judgement(items[i]);
    }
    return judgements;
  }

  std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort) override {
    return evaluate(layouts, effort, {});
  }
  std::vector<PlanPoint> evaluate_further(std::span<const PlanPoint> known, Effort effort) override {
    return evaluate(layouts_of(known), effort, known);
  }

 private:
  struct Worker {
    Worker(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic)
        : shelf(question, facts, traffic), simulator(question, traffic, shelf) {}
    EngineShelf shelf;
    LayoutSimulator simulator;
  };
  using Work = std::function<Json(LayoutSimulator& simulator, size_t index)>;

  // `known`: of each layout, or of none.
  std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort,
                                  std::span<const PlanPoint> known) {
    std::vector<std::string> keys;
    for (const ServingLayout& layout : layouts) keys.push_back(fmt::format("{} {}", effort_name(effort), layout.key()));
    // All processes go through it together and share its runs.
    const bool is_shared_work = layouts.size() == 1 && is_shared_by_runs(effort);
    const RunStretches together = [&](std::span<const StretchTask> tasks) { return run_stretches(tasks); };
    const std::vector<std::string> results = shared(
        keys, is_shared_work ? 1 : threads(),  // its runs are on all threads
        [&](LayoutSimulator& simulator, size_t i) {
          return point_json(simulator.evaluate(layouts[i], effort,
                                               {.known = known.empty() ? nullptr : &known[i],
                                                .run_stretches = is_shared_work ? together : RunStretches(),
                                                .workers = processes_ * static_cast<int64_t>(threads())}));
        },
        [&](size_t /*index*/) { return is_shared_work; });
    std::vector<PlanPoint> points;
    for (size_t i = 0; i < layouts.size(); ++i) {
      const Json json = parse_json(results[i], source_name);
      points.push_back(read_point(JsonView(json, source_name, keys[i]), layouts[i], effort));
    }
    return points;
  }

  std::vector<StretchOutcome> run_stretches(std::span<const StretchTask> tasks) {
    std::vector<std::string> keys;
    for (const StretchTask& task : tasks) keys.push_back(task.key());
    const std::vector<std::string> results = shared(keys, threads(), [&](LayoutSimulator& simulator, size_t i) {
      return outcome_json(simulator.run_stretch(tasks[i]), tasks[i], question_.slos);
    });
    std::vector<StretchOutcome> outcomes;
    for (size_t i = 0; i < tasks.size(); ++i) {
      const Json json = parse_json(results[i], source_name);
      outcomes.push_back(read_outcome(JsonView(json, source_name, keys[i])));
    }
    return outcomes;
  }

  unsigned threads() const { return static_cast<unsigned>(workers_.size()); }
  std::vector<std::string> shared(const std::vector<std::string>& keys, unsigned threads, const Work& work,
                                  const std::function<bool(size_t index)>& helps_with = {}) {
    return shared_results(
        store_, keys, threads,
        [&](unsigned thread, size_t index) { return work(workers_[thread]->simulator, index).dump(0); }, helps_with);
  }

  const ServingQuestion& question_;
  ResultStore& store_;
  int64_t processes_;                             // 0 = not known
  std::vector<std::unique_ptr<Worker>> workers_;  // one for each thread
};

}  // namespace

std::string stored_question(const ServingQuestion& question, const Traffic& traffic, const std::string& facts) {
  return fmt::format("serving results {}|{}|{}", plan_result_format, facts, question.key(traffic));
}

std::unique_ptr<PlanEvaluator> stored_evaluator(const ServingQuestion& question, const ServingFacts& facts,
                                                const Traffic& traffic, unsigned threads, ResultStore& store,
                                                int64_t processes) {
  return std::make_unique<StoredEvaluator>(question, facts, traffic, threads, store, processes);
}

}  // namespace foretoken
