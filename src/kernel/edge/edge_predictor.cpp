#include "kernel/edge/edge_predictor.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// An operator whose code and descriptors are not in the core's own cache: what ONNX Runtime takes for one on a
// Neoverse-V1 in a sweep from Python, whose interpreter runs in between. From Node.js it is 301 ns. (Its own profile of
// decoders, whose products stream megabytes of weights in between, shows 1.2 us too.)
constexpr double evicted_node_ns = 1192;

// The kind whose prices serve where a sweep lacks a kind's own; itself where there is none.
EdgeKernelKind stand_in(EdgeKernelKind kind) {
  switch (kind) {
    case EdgeKernelKind::softmax:
      return EdgeKernelKind::scaled_softmax;
    case EdgeKernelKind::fused_layer_norm:
      return EdgeKernelKind::layer_norm;
    case EdgeKernelKind::fused_gelu:
      return EdgeKernelKind::gelu;
    case EdgeKernelKind::depthwise:
      return EdgeKernelKind::convolution;
    case EdgeKernelKind::gemv:
    case EdgeKernelKind::batched_matmul:
      return EdgeKernelKind::linear;
    case EdgeKernelKind::int8_depthwise:
      return EdgeKernelKind::int8_convolution;
    case EdgeKernelKind::int8_gemv:
      return EdgeKernelKind::int8_linear;
    case EdgeKernelKind::int4_gemv:
      return EdgeKernelKind::int4_linear;
    case EdgeKernelKind::convolution:
    case EdgeKernelKind::linear:
    case EdgeKernelKind::int8_convolution:
    case EdgeKernelKind::int8_linear:
    case EdgeKernelKind::int4_linear:
    case EdgeKernelKind::empty:
      return kind;
    default:
      return EdgeKernelKind::traffic;
  }
}

bool within(const EdgeKindPrices& kind, std::span<const double> amounts) {
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i] > 0 && (amounts[i] < kind.least[i] || amounts[i] > kind.most[i])) return false;
  }
  return true;
}

// Constants that were evicted are more traffic than the kernel had alone; less than the sweep had is nothing new.
bool within_most(const EdgeKindPrices& kind, std::span<const double> amounts) {
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i] > kind.most[i] && kind.most[i] > 0) return false;
  }
  return true;
}

// The kind that a kernel is priced as; nothing when the sweep has neither its own nor one that can stand in.
std::optional<EdgeKernelKind> priced_kind(const EdgePredictor& predictor, EdgeKernelKind kind) {
  for (EdgeKernelKind candidate = kind;; candidate = stand_in(candidate)) {
    if (predictor.kinds.contains(candidate)) return candidate;
    if (candidate == stand_in(candidate)) return std::nullopt;
  }
}

// A kernel with the law that prices it. InputError for one that the predictor does not know.
struct PricedKernel {
  const EdgeKindPrices& kind;
  const EdgeLaw& law;
  bool own_kind = false;
  std::array<double, most_edge_prices> room{};

  PricedKernel(const EdgePredictor& predictor, const EdgeKernel& kernel, EdgeKernelKind priced_as,
               double touched_between)
      : kind(predictor.kinds.at(priced_as)), law(edge_law(priced_as)), own_kind(priced_as == kernel.kind) {
    EdgeCore core = predictor.core;
    core.touched_between = touched_between;
    law.amounts(kernel, core, {room.data(), law.prices.size()});
  }
  std::span<const double> amounts() const { return {room.data(), law.prices.size()}; }
  double seconds() const { return priced_seconds(amounts(), kind.prices_ns); }
};

PricedKernel priced(const EdgePredictor& predictor, const EdgeKernel& kernel, double touched_between = 0) {
  const std::optional<EdgeKernelKind> priced_as = priced_kind(predictor, kernel.kind);
  if (!priced_as) {
    throw InputError({.source = fmt::format("edge predictor of {}, {}", predictor.device, predictor.runtime),
                      .value = std::string(edge_kind_name(kernel.kind)),
                      .expected = "a kind of kernel that its sweep has measured"});
  }
  return {predictor, kernel, *priced_as, touched_between};
}

}  // namespace

const EdgeThreadScaling* EdgePredictor::scaling_to(int64_t with_threads) const {
  for (const EdgeThreadScaling& own : thread_scaling) {
    if (own.threads == with_threads) return &own;
  }
  return nullptr;
}

const EdgeSpeedup* EdgePredictor::speedup_of(const EdgeThreadScaling& scaling, EdgeKernelKind kind) {
  for (EdgeKernelKind candidate = kind;; candidate = stand_in(candidate)) {
    if (const auto found = scaling.kinds.find(candidate); found != scaling.kinds.end()) return &found->second;
    if (candidate == stand_in(candidate)) break;
  }
  // What merely moves bytes divides as a sum does.
  const auto sum = scaling.kinds.find(EdgeKernelKind::add);
  return stand_in(kind) == EdgeKernelKind::traffic && sum != scaling.kinds.end() ? &sum->second : nullptr;
}

bool EdgePredictor::knows(const EdgeKernel& kernel) const {
  return priced_kind(*this, kernel.kind).has_value();
}

Estimate EdgePredictor::kernel_seconds(const EdgeKernel& kernel) const {
  const PricedKernel own = priced(*this, kernel);
  const double seconds = own.seconds();
  const bool known = own.own_kind && within(own.kind, own.amounts());
  const double factor = portable_exp(own.kind.half_width);
  const Estimate swept{
      .value = seconds, .low = seconds / factor, .high = seconds * factor, .kind = Confidence::interpolated};
  return known ? swept : outside_measured(swept);
}

std::vector<EdgeTerm> EdgePredictor::kernel_terms(const EdgeKernel& kernel, double touched_between) const {
  const PricedKernel own = priced(*this, kernel, touched_between);
  std::vector<EdgeTerm> terms;
  for (size_t i = 0; i < own.law.prices.size(); ++i) {
    const EdgePrice& price = own.law.prices[i];
    terms.push_back(
        {.name = price.name, .reading = price.reading, .seconds = own.amounts()[i] * own.kind.prices_ns[i] * 1e-9});
  }
  return terms;
}

double EdgePredictor::start_times(double touched_between) const {
  // Costs that were learned from whole networks, the only ones with a setup, hold it already.
  if (!calls || calls->node_ns <= 0 || calls->setup_ns != 0) return 1;
  return 1 + std::max(0.0, evicted_node_ns / calls->node_ns - 1) * cache_split(1, touched_between, core).far;
}

double EdgePredictor::dispatch_seconds(const EdgeKernel& kernel, double touched_between) const {
  if (!calls) return kernel_terms(kernel).front().seconds;
  const double setup_ns = multiplies(kernel.kind) ? calls->setup_ns : 0;
  return (edge_operator_count(kernel.kind) * calls->node_ns * start_times(touched_between) + setup_ns) * 1e-9;
}

Estimate EdgePredictor::kernel_seconds_in_model(const EdgeKernel& kernel, double touched_between) const {
  const PricedKernel own = priced(*this, kernel, touched_between);
  Estimate alone = kernel_seconds(kernel);
  if (alone.kind == Confidence::interpolated && !within_most(own.kind, own.amounts())) alone = outside_measured(alone);
  if (!calls) return scaled(alone, own.seconds() / alone.value);
  const double work = own.seconds() - own.kind.prices_ns.front() * 1e-9;
  const double bytes = edge_work(kernel).written.value(), elements = bytes / bytes_per_element(DType::fp32);
  const CacheSplit split = cache_split(elements, 2 * bytes, core);
  const double copy = (split.near * calls->copy_near_ns + split.far * calls->copy_far_ns) * 1e-9;
  // A quarter of the work remains whatever the copy is said to cost.
  const double seconds = std::max(work - copy, work / 4) + dispatch_seconds(kernel, touched_between);
  return scaled(alone, seconds / alone.value);
}

}  // namespace foretoken
