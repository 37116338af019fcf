#include "serving/stages/stage.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "serving/steps/step_bound.h"

namespace foretoken {
namespace {

class FixedStage final : public StageTimes {
 public:
  explicit FixedStage(double seconds) : seconds_(seconds) {}
  Estimate batch_seconds(std::span<const Request> /*batch*/) override { return exactly(seconds_); }

 private:
  double seconds_;
};

}  // namespace

double StageUse::utilisation(double duration_s) const {
  return duration_s > 0 ? busy_s / (static_cast<double>(servers) * duration_s) : 0;
}

double StageUse::mean_batch() const {
  return batches > 0 ? static_cast<double>(service.count()) / static_cast<double>(batches) : 0;
}

RequestStage::RequestStage(const StageConfig& config, StepBound bound) : config_(config), bound_(bound) {
  ensure(config.times != nullptr && config.servers >= 1 && config.max_batch >= 1, "a stage can serve");
  use_.name = config.name;
  use_.servers = config.servers;
}

void RequestStage::arrive(Request&& request, Picoseconds now) {
  waiting_.push_back({std::move(request), now});
  start_batches(now);
}

std::optional<Picoseconds> RequestStage::next_event() const {
  if (running_.empty()) return std::nullopt;
  return running_.front().end;
}

std::vector<Request> RequestStage::advance(Picoseconds now) {
  ensure(!running_.empty() && running_.front().end == now, "a batch ends");
  std::vector<Request> done = std::move(running_.front().requests);
  running_.erase(running_.begin());
  for (Request& request : done) config_.times->finish(request);
  start_batches(now);
  return done;
}

void RequestStage::start_batches(Picoseconds now) {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < config_.servers) {
    Batch batch;
    const size_t count = std::min(waiting_.size(), static_cast<size_t>(config_.max_batch));
    for (size_t i = 0; i < count; ++i) {
      use_.wait.add(now - waiting_.front().since);
      batch.requests.push_back(std::move(waiting_.front().request));
      waiting_.pop_front();
    }
    const double seconds = at_bound(config_.times->batch_seconds(batch.requests), bound_);
    if (!(seconds >= 0 && seconds < 1e6)) {
      throw InputError({.source = config_.name,
                        .value = number_text(seconds) + " s for one batch",
                        .expected = "a stage time below 1000000 s"});
    }
    batch.end = now + to_picoseconds(Seconds(seconds));
    use_.service.add(batch.end - now, static_cast<int64_t>(count));
    use_.busy_s += seconds;
    ++use_.batches;
    const auto later = std::upper_bound(running_.begin(), running_.end(), batch.end,
                                        [](Picoseconds end, const Batch& other) { return end < other.end; });
    running_.insert(later, std::move(batch));
  }
}

std::unique_ptr<StageTimes> fixed_stage(double seconds) {
  return std::make_unique<FixedStage>(seconds);
}

}  // namespace foretoken
