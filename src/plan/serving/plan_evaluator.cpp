#include "plan/serving/plan_evaluator.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/parallel.h"

namespace foretoken {
namespace {

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
    // Each thread has step times of its own.
    const std::vector<std::vector<size_t>> groups = layouts_by_engines(layouts);
    on_all_threads(groups.size(), [&](LayoutSimulator& simulator, size_t group) {
      for (const size_t i : groups[group]) judgements[i] = simulator.judge(layouts[i]);
    });
    return judgements;
  }

  std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort) override {
    std::vector<PlanPoint> points(layouts.size());
    on_all_threads(layouts.size(),
                   [&](LayoutSimulator& simulator, size_t i) { points[i] = simulator.evaluate(layouts[i], effort); });
    return points;
  }

 private:
  struct Worker {
    Worker(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic,
           const std::function<void()>& check_wanted)
        : shelf(question, facts, traffic), simulator(question, traffic, shelf, check_wanted) {}
    EngineShelf shelf;
    LayoutSimulator simulator;
  };

  void on_all_threads(size_t tasks, const std::function<void(LayoutSimulator&, size_t)>& work) {
    std::atomic<size_t> next_worker = 0, next_task = 0;
    run_on_threads(static_cast<unsigned>(workers_.size()), [&] {
      Worker& worker = *workers_[next_worker++];
      for (size_t i = next_task++; i < tasks; i = next_task++) {
        try {
          if (check_wanted_) check_wanted_();
          work(worker.simulator, i);
        } catch (...) {
          next_task = tasks;  // the others need not go on either
          throw;
        }
      }
    });
  }

  std::function<void()> check_wanted_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

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

}  // namespace foretoken
