#include "compose/edge/edge_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/portable_math.h"
#include "model/onnx/activation_peak.h"
#include "model/onnx/summary.h"

namespace foretoken {
namespace {

constexpr EdgeKernelKind multiplying[] = {EdgeKernelKind::convolution, EdgeKernelKind::linear,
                                          EdgeKernelKind::batched_matmul};
constexpr EdgeKernelKind multiplying_integers[] = {EdgeKernelKind::int8_convolution, EdgeKernelKind::int8_linear,
                                                   EdgeKernelKind::int4_linear};

double term_seconds(const std::vector<EdgeTerm>& terms, std::string_view name) {
  for (const EdgeTerm& term : terms) {
    if (term.name == name) return term.seconds;
  }
  return 0;
}

// Runtimes cut products into blocks for their threads; whether they do so with other kernels depends on sizes.
bool divides(EdgeKernelKind kind) {
  return kind == EdgeKernelKind::depthwise || kind == EdgeKernelKind::gemv || is_int8(kind) || is_int4(kind) ||
         std::find(std::begin(multiplying), std::end(multiplying), kind) != std::end(multiplying);
}

// Threads of a run against those of the sweep.
struct ThreadRatio {
  double threads = 1;
  const EdgeThreadScaling* measured = nullptr;
};

// By the measured speedup of the kind. Without one, at best every kernel divides by the threads, and at worst none
// does; products and convolutions lie half way, as a logarithm, and others run on one thread.
Estimate on_threads(const Estimate& seconds, EdgeKernelKind kind, const ThreadRatio& ratio) {
  const double threads = ratio.threads;
  if (threads == 1) return seconds;
  if (ratio.measured != nullptr) {
    if (const EdgeSpeedup* own = EdgePredictor::speedup_of(*ratio.measured, kind)) {
      return {.value = own->seconds(seconds.value),
              .low = own->seconds(seconds.low) * portable_exp(-own->half_width),
              .high = own->seconds(seconds.high) * portable_exp(own->half_width),
              .kind = seconds.kind};
    }
  }
  return {.value = divides(kind) ? seconds.value / std::sqrt(threads) : seconds.value,
          .low = seconds.low / std::max(threads, 1.0),
          .high = seconds.high / std::min(threads, 1.0),
          .kind = Confidence::extrapolated};
}

// Int8 instructions multiply so many pairs where fp32 ones multiply one (VNNI, SDOT).
constexpr double int8_pairs = 4;

// The least share of its fp32 time that a product in this format takes: other formats save the bytes of weights.
double format_share(Scheme scheme) {
  const SchemeFacts& format = facts(scheme);
  constexpr double fp32_bytes = 4;
  return std::min(1.0, format.math == DType::int8 ? 1 / int8_pairs : format.weight_bytes / fp32_bytes);
}

// Bytes of weights against those in fp32.
double format_bytes_share(Scheme scheme) {
  constexpr double fp32_bytes = 4;
  return std::min(1.0, facts(scheme).weight_bytes / fp32_bytes);
}

// Half way, as a logarithm, between what the format allows and no gain at all. Weights that are turned into fp32 first
// may take longer than fp32 ones: ONNX Runtime's MatMulNBits without an accuracy level takes up to three times as long.
Estimate in_format(const Estimate& fp32, const EdgeCall& call) {
  const double share = format_share(call.scheme);
  if (share == 1) return fp32;
  constexpr double slower_at_worst = 3;
  const double most = call.widens_weights ? slower_at_worst : 1;
  return {.value = fp32.value * std::sqrt(share * most),
          .low = fp32.low * share,
          .high = fp32.high * most,
          .kind = std::max(fp32.kind, Confidence::extrapolated)};
}

// Of a kernel that no sweep has, by the price of another.
Estimate as_stand_in(const Estimate& swept) {
  return swept.kind >= Confidence::extrapolated ? swept : outside_measured(swept);
}

// What the calls of a step spend their time on beside being called.
class StepTerms {
 public:
  void add(const std::vector<EdgeTerm>& terms, double count) {
    for (size_t i = 1; i < terms.size(); ++i) {
      EdgeTerm term = terms[i];
      term.seconds *= count;
      all_ += term.seconds;
      if (term.seconds > largest_.seconds) largest_ = term;
    }
  }
  void tell(EdgeStepTime& time) const {
    time.largest = largest_;
    time.largest_share = all_ > 0 ? largest_.seconds / all_ : 0;
  }

 private:
  EdgeTerm largest_;
  double all_ = 0;
};

void add_work(Work& sum, const Work& part, double count) {
  sum.flops += part.flops * count;
  sum.weights_read += part.weights_read * count;
  sum.activations_read += part.activations_read * count;
  sum.written += part.written * count;
}

// The graph's count of a step's FLOPs, which is that of `models`, shared among its calls as the kernels count.
Flops flops_by_graph(const EdgeStep& step, const EdgeCall& call, int64_t batch_times) {
  if (step.calls.size() == 1) return step.flops * static_cast<double>(batch_times);
  double all = 0;
  for (const EdgeCall& one : step.calls) all += edge_work(one.kernel).flops.value() * static_cast<double>(one.count);
  const double own = edge_work(call.kernel).flops.value() * static_cast<double>(call.count);
  const double share = all > 0 ? own / all : 1 / static_cast<double>(step.calls.size());
  return step.flops * (share * static_cast<double>(batch_times));
}

// The most bytes per second that any kind moves, within the core's own cache or beyond it: a sweep may find either one
// faster. Infinite where the sweep has none of them.
double best_byte_rate(const EdgePredictor& predictor) {
  std::vector<EdgeKernel> kernels;
  for (const int64_t side : {32, 8192}) {
    const TensorSizes sizes{.elements = side * side, .outputs = side * side};
    kernels.push_back(edge_product(EdgeKernelKind::gemv, {.k = side, .n = side}));
    for (const EdgeKernelKind kind : {EdgeKernelKind::add, EdgeKernelKind::channel_scale, EdgeKernelKind::concat,
                                      EdgeKernelKind::global_pool, EdgeKernelKind::transpose, EdgeKernelKind::traffic})
      kernels.push_back(edge_tensor(kind, sizes));
  }
  double best = 0;
  for (const EdgeKernel& kernel : kernels) {
    if (!predictor.kinds.contains(kernel.kind)) continue;
    const double seconds = predictor.kernel_seconds_in_model(kernel).value - predictor.dispatch_seconds(kernel);
    if (seconds > 0) best = std::max(best, edge_work(kernel).bytes().value() / seconds);
  }
  return best > 0 ? best : std::numeric_limits<double>::infinity();
}

// The most operations per second of these kinds, in full register tiles; infinite where the sweep has none of them.
double best_multiply_rate(const EdgePredictor& predictor, std::span<const EdgeKernelKind> kinds) {
  // Sizes that fill every tile, so that a multiply-add costs its two prices once.
  const int64_t side = 64 * predictor.core.tile_rows * predictor.core.tile_columns;
  const EdgeKernel full = edge_product(EdgeKernelKind::linear, {.m = side, .k = side, .n = side});
  const EdgeKernel map = edge_convolution({.in_channels = side, .out_channels = side, .out_height = side});
  double best = 0;
  for (const EdgeKernelKind kind : kinds) {
    if (!predictor.kinds.contains(kind)) continue;
    EdgeKernel kernel = kind == EdgeKernelKind::convolution || kind == EdgeKernelKind::int8_convolution ? map : full;
    kernel.kind = kind;
    const std::vector<EdgeTerm> terms = predictor.kernel_terms(kernel);
    const double seconds = term_seconds(terms, "multiply") + term_seconds(terms, "tile");
    if (seconds > 0) best = std::max(best, edge_work(kernel).flops.value() / seconds);
  }
  return best > 0 ? best : std::numeric_limits<double>::infinity();
}

}  // namespace

double constant_bytes(const EdgeLowering& lowering) {
  double bytes = 0;
  for (const EdgeStep& step : lowering.steps) {
    for (const EdgeCall& call : step.calls)
      bytes += edge_work(call.kernel).weights_read.value() * format_bytes_share(call.scheme) *
               static_cast<double>(call.count);
  }
  return bytes;
}

double EdgeRoofline::seconds(const Work& work) const {
  return std::max(work.flops.value() / flops_per_second, work.bytes().value() / bytes_per_second);
}

double EdgeRoofline::integer_seconds(const Work& work) const {
  return std::max(work.flops.value() / integers_per_second, work.bytes().value() / bytes_per_second);
}

EdgeRoofline edge_roofline(const EdgePredictor& predictor) {
  // Some kernels do better than their instructions promise against fp32.
  const double flops = best_multiply_rate(predictor, multiplying);
  const double swept = best_multiply_rate(predictor, multiplying_integers);
  return {.flops_per_second = flops,
          .integers_per_second = std::isinf(swept) ? int8_pairs * flops : std::max(swept, int8_pairs * flops),
          .bytes_per_second = best_byte_rate(predictor)};
}

EdgeModelEstimate estimate_edge_model(const EdgeLowering& lowering, const EdgePredictor& predictor,
                                      const EdgeModelOptions& options) {
  EdgeModelEstimate estimate;
  ThreadRatio threads;
  if (options.threads > 0) {
    threads = {.threads = static_cast<double>(options.threads) / static_cast<double>(predictor.threads),
               .measured = predictor.scaling_to(options.threads)};
  }
  const EdgeRoofline roofline = edge_roofline(predictor);
  const double constants = constant_bytes(lowering);
  const double node_seconds = predictor.calls ? predictor.calls->node_ns * predictor.start_times(constants) * 1e-9 : 0;
  const Estimate call = predictor.kernel_seconds({.kind = EdgeKernelKind::empty});
  estimate.call_seconds = call.value;
  std::vector<Estimate> parts = {call};
  std::map<EdgeKernelKind, EdgeKindTime> kinds;
  for (size_t s = 0; s < lowering.steps.size(); ++s) {
    const EdgeStep& step = lowering.steps[s];
    if (step.calls.empty()) {
      if (step.is_dispatched) estimate.dispatch_seconds += node_seconds;
      continue;
    }
    EdgeStepTime time{.step = s};
    StepTerms terms;
    std::vector<Estimate> own;
    for (const EdgeCall& call_of : step.calls) {
      const EdgeKernel kernel = with_batch_times(call_of.kernel, options.batch_times);
      const auto count = static_cast<double>(call_of.count);
      Estimate swept = predictor.kernel_seconds_in_model(kernel, constants);
      if (call_of.is_stand_in) swept = as_stand_in(swept);
      const Estimate one = in_format(swept, call_of);
      own.push_back(scaled(on_threads(one, kernel.kind, threads), count));
      const Work work = edge_work(kernel);
      const bool is_integer = is_int8(kernel.kind) || is_int4(kernel.kind);
      // Threads at best divide what one of them could do.
      const double least =
          count *
          (is_integer ? roofline.integer_seconds(work) : roofline.seconds(work) * format_share(call_of.scheme)) /
          std::max(threads.threads, 1.0);
      if (threads.threads != 1) own.back().low = std::max(own.back().low, std::min(least, own.back().value));
      time.least_seconds += least;
      terms.add(predictor.kernel_terms(kernel, constants), count);
      EdgeKindTime& kind = kinds[kernel.kind];
      kind.kind = kernel.kind;
      kind.calls += call_of.count;
      kind.seconds += own.back().value;
      kind.least_seconds += least;
      add_work(kind.work, work, count);
      kind.work.flops += flops_by_graph(step, call_of, options.batch_times) - work.flops * count;
    }
    terms.tell(time);
    time.seconds = sum_of_correlated(own);
    estimate.seconds_by_confidence[time.seconds.kind] += time.seconds.value;
    parts.push_back(time.seconds);
    estimate.steps.push_back(time);
  }
  if (estimate.dispatch_seconds > 0) parts.push_back(scaled(call, estimate.dispatch_seconds / call.value));
  // Kernels share prices, so that they err together.
  estimate.seconds = sum_of_correlated(parts);
  if (predictor.host_spread > 0) {
    const double factor = portable_exp(predictor.host_spread);
    estimate.seconds = product_of_independent(
        estimate.seconds, {.value = 1, .low = 1 / factor, .high = factor, .kind = estimate.seconds.kind});
  }
  for (const auto& [kind, time] : kinds) estimate.kinds.push_back(time);
  std::stable_sort(estimate.kinds.begin(), estimate.kinds.end(),
                   [](const EdgeKindTime& a, const EdgeKindTime& b) { return a.seconds > b.seconds; });
  if (predictor.busy_watts) estimate.joules = scaled(estimate.seconds, *predictor.busy_watts);
  return estimate;
}

std::optional<std::string> unmeasured_threads_note(const EdgePredictor& predictor, int64_t threads) {
  if (threads == 0 || threads == predictor.threads || predictor.scaling_to(threads) != nullptr) return std::nullopt;
  if (threads < predictor.threads) {
    return fmt::format(
        "fewer threads than the {} of this device's sweep were not measured. The interval reaches from the sweep's "
        "time "
        "to a slowdown in proportion to the threads. Run `foretoken profile cpu` to measure speedups",
        predictor.threads);
  }
  return fmt::format(
      "the speedup of {} was not measured on this device (its sweep used {}). The interval reaches from perfect "
      "speedup to none, and the value assumes a speedup of {:.3g} for products and convolutions. "
      "Run `foretoken profile cpu` to measure speedups",
      counted(threads, "thread"), counted(predictor.threads, "thread"),
      std::sqrt(static_cast<double>(threads) / static_cast<double>(predictor.threads)));
}

EdgeMemory edge_memory(const OnnxGraph& graph, const EdgeLowering& lowering) {
  std::vector<int64_t> turns(graph.nodes.size());
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = static_cast<int64_t>(i);
  for (const EdgeStep& step : lowering.steps) {
    for (const int64_t node : step.nodes) turns[static_cast<size_t>(node)] = step.nodes.back();
  }
  return {.weights = graph_parameters(graph).bytes, .activations = activation_peak(graph, turns).bytes};
}

}  // namespace foretoken
