#include "plan/serving/plan_evaluator.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/parallel.h"
#include "base/units.h"

namespace foretoken {
namespace {

// Layouts whose engines share step times, or may be the two pools of one layout.
std::string step_family(const ServingLayout& layout) {
  const EngineChoice& engine = layout.pool.engine;
  return fmt::format("{}/{}/{}/{}", engine.device, engine.engine, engine.scheme ? facts(*engine.scheme).name : "",
                     dtype_name(engine.kv_dtype));
}

class ThreadedEvaluator final : public PlanEvaluator {
 public:
  ThreadedEvaluator(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic,
                    unsigned threads, std::function<void()> check_wanted)
      : check_wanted_(std::move(check_wanted)) {
    for (unsigned i = 0; i < std::max(1U, threads); ++i) {
      workers_.push_back(std::make_unique<Worker>(question, facts, traffic, check_wanted_));
    }
  }

  std::vector<LayoutJudgement> judge(std::span<const ServingLayout> layouts) override {
    std::vector<LayoutJudgement> judgements(layouts.size());
    const std::vector<std::vector<size_t>> groups = layouts_by_engines(layouts);
    std::vector<std::string> families;
    families.reserve(groups.size());
    for (const std::vector<size_t>& group : groups) families.push_back(step_family(layouts[group.front()]));
    on_all_threads(families, [&](LayoutSimulator& simulator, size_t group) {
      for (const size_t i : groups[group]) judgements[i] = simulator.judge(layouts[i]);
    });
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
    Worker(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic,
           const std::function<void()>& check_wanted)
        : shelf(question, facts, traffic), simulator(question, traffic, shelf, check_wanted) {}
    EngineShelf shelf;
    LayoutSimulator simulator;
  };

  // `known`: of each layout, or of none.
  std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort,
                                  std::span<const PlanPoint> known) {
    const auto known_of = [&](size_t i) { return known.empty() ? nullptr : &known[i]; };
    if (layouts.size() == 1) return {evaluate_alone(layouts.front(), effort, known_of(0))};
    std::vector<PlanPoint> points(layouts.size());
    std::vector<LayoutSimulator*> simulators(layouts.size());
    std::vector<std::string> families;
    families.reserve(layouts.size());
    for (const ServingLayout& layout : layouts) families.push_back(step_family(layout));
    on_all_threads(families, [&](LayoutSimulator& simulator, size_t i) {
      points[i] = simulator.evaluate(layouts[i], effort, {.known = known_of(i), .run_stretches = {}});
      simulators[i] = &simulator;
    });
    for (size_t i = 0; i < layouts.size(); ++i) simulated_by_[layouts[i].key()] = simulators[i];
    return points;
  }

  PlanPoint evaluate_alone(const ServingLayout& layout, Effort effort, const PlanPoint* known) {
    const std::string family = step_family(layout);
    LayoutSimulator*& simulator = simulated_by_[layout.key()];
    if (simulator == nullptr) simulator = &workers_[owners_.emplace(family, 0).first->second]->simulator;
    const RunStretches on_threads = [&](std::span<const StretchTask> tasks) {
      std::vector<StretchOutcome> outcomes(tasks.size());
      on_all_threads(std::vector<std::string>(tasks.size(), family),
                     [&](LayoutSimulator& runs, size_t i) { outcomes[i] = runs.run_stretch(tasks[i]); });
      return outcomes;
    };
    const bool is_shared = workers_.size() > 1 && is_shared_by_runs(effort);
    return simulator->evaluate(layout, effort,
                               {.known = known,
                                .run_stretches = is_shared ? on_threads : RunStretches(),
                                .workers = static_cast<int64_t>(workers_.size())});
  }

  // Each thread has step times of its own: layouts go to the thread that has those of their family. One that runs out
  // of its own takes others'.
  class Tasks {
   public:
    Tasks(const std::vector<std::string>& families, std::map<std::string, size_t>& owners)
        : families_(families), owners_(owners), taken_(families.size()) {}

    std::optional<size_t> next(size_t worker) {
      const std::scoped_lock lock(mutex_);
      std::optional<size_t> unowned, of_others;
      for (size_t i = 0; i < families_.size(); ++i) {
        if (taken_[i]) continue;
        const auto owner = owners_.find(families_[i]);
        if (owner != owners_.end() && owner->second == worker) return take(i);
        std::optional<size_t>& kind = owner == owners_.end() ? unowned : of_others;
        if (!kind) kind = i;
      }
      if (unowned) owners_.emplace(families_[*unowned], worker);
      const std::optional<size_t> chosen = unowned ? unowned : of_others;
      return chosen ? take(*chosen) : std::nullopt;
    }
    void stop() {
      const std::scoped_lock lock(mutex_);
      std::fill(taken_.begin(), taken_.end(), true);
    }

   private:
    std::optional<size_t> take(size_t i) {
      taken_[i] = true;
      return i;
    }

    const std::vector<std::string>& families_;
    std::map<std::string, size_t>& owners_;
    std::vector<bool> taken_;
    std::mutex mutex_;
  };

  void on_all_threads(const std::vector<std::string>& families,
                      const std::function<void(LayoutSimulator&, size_t)>& work) {
    std::atomic<size_t> next_worker = 0;
    Tasks tasks(families, owners_);
    run_on_threads(static_cast<unsigned>(workers_.size()), [&] {
      const size_t number = next_worker++;
      while (const std::optional<size_t> task = tasks.next(number)) {
        try {
          if (check_wanted_) check_wanted_();
          work(workers_[number]->simulator, *task);
        } catch (...) {
          tasks.stop();  // the others need not go on either
          throw;
        }
      }
    });
  }

  std::function<void()> check_wanted_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::string, size_t> owners_;  // of families: numbers of workers
  // By the layout's key, the last that ran it: it still has those runs.
  std::map<std::string, LayoutSimulator*> simulated_by_;
};

}  // namespace

std::vector<PlanPoint> PlanEvaluator::evaluate_further(std::span<const PlanPoint> known, Effort effort) {
  return evaluate(layouts_of(known), effort);
}

std::vector<ServingLayout> layouts_of(std::span<const PlanPoint> points) {
  std::vector<ServingLayout> layouts;
  layouts.reserve(points.size());
  for (const PlanPoint& point : points) layouts.push_back(point.layout);
  return layouts;
}

std::vector<std::vector<size_t>> layouts_by_engines(std::span<const ServingLayout> layouts) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < layouts.size(); ++i) {
    std::string key = layouts[i].pool.engine.key();
    if (layouts[i].decode) key += "+" + layouts[i].decode->engine.key();
    groups[key].push_back(i);
  }
  std::vector<std::vector<size_t>> all;
  all.reserve(groups.size());
  for (auto& [key, members] : groups) all.push_back(std::move(members));
  return all;
}

std::unique_ptr<PlanEvaluator> threaded_evaluator(const ServingQuestion& question, const ServingFacts& facts,
                                                  const Traffic& traffic, unsigned threads,
                                                  std::function<void()> check_wanted) {
  return std::make_unique<ThreadedEvaluator>(question, facts, traffic, threads, std::move(check_wanted));
}

std::optional<double> usd_per_million_tokens(const ServingQuestion& question, const ServingLayout& layout,
                                             const PlanRun& run) {
  const std::optional<double> usd = question.usd_per_hour(layout);
  if (!usd || run.output_tokens_per_s <= 0) return std::nullopt;
  return *usd / seconds_per_hour / run.output_tokens_per_s * 1e6;
}

}  // namespace foretoken
