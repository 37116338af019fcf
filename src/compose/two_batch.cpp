#include "compose/two_batch.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

bool is_exchange(const KernelShape& shape) {
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective != nullptr && collective->axis == ParallelAxis::expert;
}

bool reads_the_cache(const KernelShape& shape) {
  return std::holds_alternative<AttentionShape>(shape) || std::holds_alternative<MixedAttentionShape>(shape) ||
         std::holds_alternative<LatentAttentionShape>(shape);
}

bool is_mixer(const KernelShape& shape) {
  return reads_the_cache(shape) || std::holds_alternative<LinearAttentionShape>(shape);
}

// DeepGEMM is told how many processors it may use; others find those that are free.
bool is_multiply(const KernelShape& shape) {
  return std::holds_alternative<GemmShape>(shape) || std::holds_alternative<MoeShape>(shape) ||
         std::holds_alternative<LatentProjectionShape>(shape);
}

// Which operators of a stage belong to layers that exchange tokens, and where in them.
struct PlacedCall {
  std::optional<HalfStep::Part> part;  // nothing = outside, or an exchange
  double share = 0;                    // of its calls, in layers that exchange tokens
};

double layers_of(const std::vector<Operator>& calls) {
  double most = 1;
  for (const Operator& call : calls) most = std::max(most, static_cast<double>(call.count));
  return most;
}

std::vector<PlacedCall> placed_calls(const std::vector<Operator>& calls) {
  double exchanging = 0;
  const double layers = layers_of(calls);
  for (const Operator& call : calls) {
    if (is_exchange(call.shape)) exchanging = std::max(exchanging, static_cast<double>(call.count));
  }
  std::vector<PlacedCall> placed(calls.size());
  if (exchanging == 0) return placed;
  HalfStep::Part part = HalfStep::before;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Operator& call = calls[i];
    const auto count = static_cast<double>(call.count);
    if (const auto* exchange = std::get_if<CollectiveShape>(&call.shape);
        exchange != nullptr && is_exchange(call.shape)) {
      part = exchange->returns ? HalfStep::after : HalfStep::routed;
      placed[i].share = 1;
      continue;
    }
    if (call.part == StepPart::embedding || call.part == StepPart::head || count == 1) continue;
    const bool only_elsewhere = call.part == StepPart::feed_forward && count + exchanging <= layers;
    if (only_elsewhere) continue;
    if (is_mixer(call.shape)) part = HalfStep::attention;
    placed[i].part = call.name.starts_with("shared_") ? HalfStep::shared : part;
    placed[i].share = call.part == StepPart::experts ? 1 : std::min(1.0, exchanging / layers);
  }
  return placed;
}

double memory_share(const TimedLaunch& one, const Device& device) {
  if (!device.memory_bandwidth || !(one.seconds.value > 0)) return 0;
  const double bytes = (one.work.weights_read + one.work.activations_read + one.work.written).value();
  return std::min(1.0, bytes / (device.memory_bandwidth->value.value() * one.seconds.value));
}

double launches_of(const StageEstimate& stage) {
  double count = 0;
  for (const TimedLaunch& one : stage.launches) count += static_cast<double>(one.launch.count);
  return count;
}

// The mean gap after a launch, beside what its measured time holds.
double gap_beside_launch(const StageEstimate& stage) {
  return std::max(0.0, stage.time.launch_gap - gaps_in_launches(stage)) / std::max(1.0, launches_of(stage));
}

// A token's copies are written to a buffer, read from it and written to their place.
constexpr double passes_over_memory = 3;

// Two queues, each in order: kernels, and exchanges that may run beside them.
struct Task {
  bool exchange = false;
  double alone = 0, beside = 0;
  int64_t after = -1;  // the task that must have ended
};

TwoBatchTime run(const std::vector<Task>& tasks) {
  std::array<std::vector<size_t>, 2> queues;
  for (size_t i = 0; i < tasks.size(); ++i) queues[tasks[i].exchange ? 1 : 0].push_back(i);
  std::vector<bool> ended(tasks.size(), false);
  std::array<size_t, 2> next{};
  std::array<double, 2> left{1, 1};  // of the task at the head
  TwoBatchTime time;
  while (next[0] < queues[0].size() || next[1] < queues[1].size()) {
    std::array<bool, 2> runs{};
    for (size_t q = 0; q < 2; ++q) {
      if (next[q] == queues[q].size()) continue;
      const int64_t wanted = tasks[queues[q][next[q]]].after;
      runs[q] = wanted < 0 || ended[static_cast<size_t>(wanted)];
    }
    ensure(runs[0] || runs[1], "one of the two queues goes on");
    const bool both = runs[0] && runs[1];
    double passed = std::numeric_limits<double>::infinity();
    std::array<double, 2> whole{};
    for (size_t q = 0; q < 2; ++q) {
      if (!runs[q]) continue;
      const Task& task = tasks[queues[q][next[q]]];
      whole[q] = both ? task.beside : task.alone;
      passed = std::min(passed, left[q] * whole[q]);
    }
    for (size_t q = 0; q < 2; ++q) {
      if (!runs[q]) continue;
      left[q] = left[q] * whole[q] <= passed ? 0 : left[q] - passed / whole[q];
      if (left[q] > 0) continue;
      ended[queues[q][next[q]++]] = true;
      left[q] = 1;
    }
    time.seconds += passed;
    (runs[0] ? time.kernels : time.exposed) += passed;
    if (both) time.hidden += passed;
  }
  return time;
}

TwoBatchTime overlap_normal(const HalfStep& half, int64_t layers) {
  const auto compute = [&](std::initializer_list<HalfStep::Part> parts, int64_t after) {
    Task task{.after = after};
    for (const HalfStep::Part part : parts) {
      task.alone += half.alone[part] / half.layers;
      task.beside += half.beside[part] / half.layers;
    }
    return task;
  };
  const auto travel = [&](double seconds, int64_t after) {
    return Task{.exchange = true,
                .alone = seconds / half.layers,
                .beside = seconds * half.slowed / half.layers,
                .after = after};
  };
  std::vector<Task> tasks;
  const auto add = [&](const Task& task) {
    tasks.push_back(task);
    return static_cast<int64_t>(tasks.size()) - 1;
  };
  std::array<int64_t, 2> attended{}, routed{};
  for (int64_t& one : attended) one = add(compute({HalfStep::before, HalfStep::attention}, -1));
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (size_t h = 0; h < 2; ++h) {
      const int64_t arrived = add(travel(half.dispatch, attended[h]));
      routed[h] = add(compute({HalfStep::routed}, arrived));
    }
    for (size_t h = 0; h < 2; ++h) {
      add(compute({HalfStep::shared}, -1));
      const int64_t back = add(travel(half.combine, routed[h]));
      attended[h] = add(layer + 1 < layers ? compute({HalfStep::after, HalfStep::before, HalfStep::attention}, back)
                                           : compute({HalfStep::after}, back));
    }
  }
  return run(tasks);
}

// The stages of a half between which the other one is called: projections; attention; send and shared experts; take
// in, experts, send back; take in; and on with the next layer.
TwoBatchTime overlap_low_latency(const HalfStep& half, int64_t layers) {
  const int64_t stages = 5 * layers + 1, head_start = 2;
  const auto one = [&](HalfStep::Part part) { return half.alone[part] / half.layers; };
  const double send_out = half.dispatch_on_device / 2 / half.layers,
               send_back = half.combine_on_device / 2 / half.layers;
  const double out = std::max(0.0, (half.dispatch - half.dispatch_on_device) / half.layers);
  const double back = std::max(0.0, (half.combine - half.combine_on_device) / half.layers);
  TwoBatchTime time;
  std::array<double, 2> arrives{};
  const auto compute = [&](double seconds) {
    time.seconds += seconds;
    time.kernels += seconds;
  };
  const auto wait = [&](double seconds) {
    time.seconds += seconds;
    time.exposed += seconds;
  };
  const auto send = [&](size_t h, double on_device, double flight) {
    wait(on_device);
    arrives[h] = time.seconds + flight;
    time.hidden += flight;
  };
  const auto take_in = [&](size_t h, double on_device) {
    const double waited = std::max(0.0, arrives[h] - time.seconds);
    time.hidden -= waited;
    wait(waited + on_device);
  };
  const auto call = [&](size_t h, int64_t stage) {
    if (stage < 0 || stage >= stages) return;
    switch (stage % 5) {
      case 0:
        if (stage > 0) compute(one(HalfStep::after));
        if (stage + 1 < stages) compute(one(HalfStep::before));
        break;
      case 1:
        compute(one(HalfStep::attention));
        break;
      case 2:
        send(h, send_out, out);
        compute(one(HalfStep::shared));
        break;
      case 3:
        take_in(h, send_out);
        compute(one(HalfStep::routed));
        send(h, send_back, back);
        break;
      default:
        take_in(h, send_back);
    }
  };
  for (int64_t stage = 0; stage < stages + head_start; ++stage) {
    call(0, stage);
    call(1, stage - head_start);
  }
  return time;
}

}  // namespace

double gaps_in_launches(const StageEstimate& stage) {
  double seconds = 0;
  for (const TimedLaunch& one : stage.launches) seconds += one.seconds.value;
  return std::max(0.0, seconds - stage.time.kernels - stage.time.communication);
}

void HalfStep::add_gap(Part part, double seconds) {
  serial += seconds;
  gaps += seconds;
  alone[part] += seconds;
  beside[part] += seconds;
}

void HalfStep::add_attention(double seconds) {
  serial += seconds;
  alone[attention] += seconds;
  beside[attention] += seconds * lent;
}

HalfStep& HalfStep::operator+=(const HalfStep& stage) {
  if (layers == 0) return *this = stage;
  if (stage.layers == 0) return *this;
  const double share = stage.layers / (layers + stage.layers);
  for (double HalfStep::*mean : {&HalfStep::layer_share, &HalfStep::lent, &HalfStep::slowed}) {
    this->*mean += (stage.*mean - this->*mean) * share;
  }
  for (double HalfStep::*sum : {&HalfStep::layers, &HalfStep::serial, &HalfStep::gaps, &HalfStep::dispatch,
                                &HalfStep::combine, &HalfStep::dispatch_on_device, &HalfStep::combine_on_device}) {
    this->*sum += stage.*sum;
  }
  for (size_t i = 0; i < parts; ++i) {
    alone[i] += stage.alone[i];
    beside[i] += stage.beside[i];
  }
  return *this;
}

HalfStep half_step(const StageEstimate& half, int64_t stage, const Device& device, const RankNetwork* network,
                   bool with_attention) {
  const std::vector<PlacedCall> placed = placed_calls(half.calls);
  const MoeShape* experts = traveling_experts(half.calls);
  HalfStep result;
  const double gap = gap_beside_launch(half);
  double traveled = 0, bytes = 0, lent_processors = 0;
  for (const TimedLaunch& one : half.launches) {
    if (!is_exchange(one.launch.shape)) continue;
    const StepCollective call = collective_of(one.launch, experts, stage);
    const ExchangeUse use = network != nullptr ? network->exchange_use(call) : ExchangeUse{};
    const auto count = static_cast<double>(one.launch.count);
    result.layers = std::max(result.layers, count);
    (call.shape.returns ? result.combine : result.dispatch) += one.seconds.value;
    (call.shape.returns ? result.combine_on_device : result.dispatch_on_device) +=
        std::min(one.seconds.value, use.on_device * count);
    result.low_latency = use.low_latency;
    result.add_gap(call.shape.returns ? HalfStep::after : HalfStep::routed, gap * count);
    lent_processors = std::max(lent_processors, use.processors);
    traveled += one.seconds.value;
    result.serial += one.seconds.value;
    bytes += call.shape.bytes * count;
  }
  if (result.layers == 0) return result;
  result.layer_share = std::min(1.0, result.layers / layers_of(half.calls));
  const double processors = device.processors ? device.processors->value : 0;
  if (processors > lent_processors) result.lent = processors / (processors - lent_processors);
  const double travel_share = result.low_latency || !device.memory_bandwidth
                                  ? 0
                                  : passes_over_memory * bytes / traveled / device.memory_bandwidth->value.value();
  double slowed = 0, all = 0;
  for (const TimedLaunch& one : half.launches) {
    const PlacedCall& place = placed[one.launch.call];
    if (!place.part) continue;
    result.add_gap(*place.part, gap * static_cast<double>(one.launch.count) * place.share);
    if (!with_attention && reads_the_cache(one.launch.shape)) continue;
    const double seconds = one.seconds.value * place.share, memory = memory_share(one, device);
    result.serial += seconds;
    // What waits for memory does not need the processors.
    const double fewer = seconds * (memory + (1 - memory) * result.lent);
    const double contention = std::max(1.0, memory + travel_share);
    result.alone[*place.part] += is_multiply(one.launch.shape) ? fewer : seconds;
    result.beside[*place.part] += fewer * contention;
    slowed += seconds * contention;
    all += seconds;
  }
  if (all > 0 && !result.low_latency) result.slowed = slowdown_beside_multiplies * slowed / all;
  return result;
}

TwoBatchTime overlap(const HalfStep& half) {
  const auto of_layers = [&](int64_t layers) {
    return half.low_latency ? overlap_low_latency(half, layers) : overlap_normal(half, layers);
  };
  // After a few layers one takes what the one before took.
  constexpr int64_t settled = 8;
  const auto layers = static_cast<int64_t>(half.layers);
  if (layers <= settled) return of_layers(layers);
  const TwoBatchTime first = of_layers(settled - 1), second = of_layers(settled);
  const auto more = static_cast<double>(layers - settled);
  const auto extended = [&](double TwoBatchTime::*part) { return second.*part + more * (second.*part - first.*part); };
  return {.seconds = extended(&TwoBatchTime::seconds),
          .kernels = extended(&TwoBatchTime::kernels),
          .exposed = extended(&TwoBatchTime::exposed),
          .hidden = extended(&TwoBatchTime::hidden)};
}

void check_two_batches(const Model& model, const ParallelPlan& plan) {
  if (model.has_experts() && plan.expert > plan.tensor) return;
  throw InputError(
      {.field = "enable_two_batch_overlap",
       .value = model.has_experts() ? "without experts on other data-parallel ranks" : "of a dense model",
       .expected = "experts on other data-parallel ranks: {data_parallel_size} and {expert_parallel_size} above 1"});
}

std::optional<StepRequest> half_of(StepRequest request) {
  if (request.phase == StepPhase::train) return std::nullopt;
  const auto halve = [](int64_t& count) { count = (count + 1) / 2; };
  if (request.batch > 1) {
    halve(request.batch);
    halve(request.prompts);
    return request;
  }
  if (request.phase == StepPhase::decode || request.input_len < 2) return std::nullopt;
  // Both halves of a prompt together attend to what is half of its keys on average.
  halve(request.input_len);
  request.context_len += request.input_len / 2;
  return request;
}

void sum_of_halves(const DispatchTime& whole, const DispatchTime& half, DispatchTime& time) {
  time.host_stall = whole.host_stall;
  time.host = 2 * half.host;
  time.seconds = time.kernels + time.communication + time.launch_gap + time.host_stall;
  if (time.host > time.seconds) {
    time.host_stall += time.host - time.seconds;
    time.seconds = time.host;
  }
}

StageEstimate in_two_batches(const StageEstimate& whole, const StageEstimate& half, int64_t stage,
                             const ErrorCorrelations& correlations, const Device& device, const RankNetwork* network) {
  const HalfStep parts = half_step(half, stage, device, network, true);
  if (parts.layers == 0) return whole;
  const TwoBatchTime inside = overlap(parts);
  StageEstimate result{.calls = half.calls, .padding = whole.padding, .memory = whole.memory};
  DispatchTime& time = result.time;
  // Normal kernels need more operators than low-latency ones, so only those outside are the same in both.
  std::vector<size_t> outside;
  double launched_outside = 0;
  const std::vector<PlacedCall> of_whole = placed_calls(whole.calls), of_half = placed_calls(half.calls);
  for (size_t i = 0; i < whole.launches.size(); ++i) {
    const TimedLaunch& one = whole.launches[i];
    const double share = of_whole[one.launch.call].share;
    (one.kernel ? time.kernels : time.communication) += one.seconds.value * (1 - share);
    launched_outside += static_cast<double>(one.launch.count) * (1 - share);
    if (share == 0) outside.push_back(i);
  }
  size_t next = 0;
  for (TimedLaunch one : half.launches) {
    const size_t place = one.launch.call;
    if (of_half[place].share > 0) {
      one.launch.count *= 2;
      one.seconds = scaled(one.seconds, 2);
      one.work = scaled(one.work, 2);
      result.calls[place].count = 2 * half.calls[place].count;
    } else {
      ensure(next < outside.size(), "both have the same operators outside the layers that exchange tokens");
      one = whole.launches[outside[next++]];
      result.calls[place] = whole.calls[one.launch.call];
      one.launch.call = place;
    }
    result.launches.push_back(std::move(one));
  }
  result.operators = by_operator(result.calls, result.launches);
  result.kernels = sum_of_launches(result.launches, correlations);
  // Gaps lie in the schedule of both halves, and some in the times of kernels.
  const double share_outside = launched_outside / std::max(1.0, launches_of(whole));
  const double in_kernels = gaps_in_launches(whole) * share_outside + 2 * gaps_in_launches(half) * (1 - share_outside);
  time.kernels = std::max(0.0, time.kernels + inside.kernels - 2 * parts.gaps - in_kernels);
  time.launch_gap = gap_beside_launch(whole) * launched_outside + 2 * parts.gaps + in_kernels;
  time.communication += inside.exposed;
  time.hidden_communication = inside.hidden;
  sum_of_halves(whole.time, half.time, time);
  result.seconds = scaled(half.seconds, time.seconds / half.seconds.value);
  return result;
}

}  // namespace foretoken
