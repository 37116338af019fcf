#include "kernel/forms/moe_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernel/forms/form_math.h"
#include "model/expert_popularity.h"
#include "model/work.h"

namespace foretoken {
namespace {

// Launches: estimated from the shortest times of each kernel; a trace shows them.
constexpr MoeKernel kernels[] = {
    {.name = "triton", .family = "triton", .launches = 12, .touches_all_rows = true, .needs_alignment = true},
    {.name = "triton_v014", .family = "triton", .launches = 12, .touches_all_rows = true, .needs_alignment = true},
    {.name = "triton_sglang",
     .family = "triton",
     .launches = 12,
     .touches_all_rows = true,
     .needs_alignment = true,
     .repeats_local_experts = true},
    {.name = "marlin", .family = "marlin", .launches = 11, .most_rows = 64, .touches_all_rows = true},
    {.name = "marlin_sglang",
     .family = "marlin",
     .launches = 11,
     .most_rows = 64,
     .touches_all_rows = true,
     .repeats_local_experts = true},
    {.name = "fi_cutlass", .family = "cutlass", .launches = 9, .least_rows = 64},
    {.name = "fi_trtllm", .family = "trtllm", .launches = 5, .least_rows = 8, .fuses_stages = true},
    {.name = "fi_trtllm_mod", .family = "trtllm", .launches = 6, .least_rows = 8, .fuses_stages = true},
    {.name = "fi_trtllm_mono", .family = "trtllm", .launches = 5, .least_rows = 8, .fuses_stages = true},
    {.name = "oai_triton", .family = "oai_triton", .launches = 13},
    // On tokens that a dispatch has already sorted by expert: two grouped multiplies and the activation between them.
    {.name = "deepgemm_contiguous",
     .family = "deepgemm",
     .launches = 3,
     .least_rows = 128,
     .most_rows = 128,
     .receives = true},
    {.name = "deepgemm_masked",
     .family = "deepgemm",
     .launches = 3,
     .least_rows = 64,
     .most_rows = 128,
     .receives = true},
};

// FlashInfer's CUTLASS experts run the first of their candidate tiles where nobody tuned them, as in the sweeps; on
// Hopper that is 128 tokens by 16 columns (flashinfer, cutlass_heuristic.cpp). Blocks of fp8 have kernels of their own.
constexpr MoeKernel untuned_cutlass_of_hopper{.name = "fi_cutlass",
                                              .family = "cutlass",
                                              .launches = 9,
                                              .least_rows = 128,
                                              .most_rows = 128,
                                              .least_columns = 16,
                                              .most_columns = 16,
                                              .lone_tiles = true};

bool is_hopper(const DeviceTraits& device) {
  return device.generation->experts == ExpertKernels::triton && device.asynchronous;
}

const MoeKernel& named(std::string_view name) {
  for (const MoeKernel& kernel : kernels) {
    if (kernel.name == name) return kernel;
  }
  return kernels[0];
}

// Quantiles of the density x^-exponent on [low, high] at evenly spaced points from `from` to 1.
void power_law_quantiles(double exponent, double low, double high, double from, std::span<double> out) {
  const double power = 1 - exponent, step = (1 - from) / static_cast<double>(out.size());
  const bool logarithmic = std::abs(power) < 1e-3;
  const double low_log = quick_log2(low), span = quick_log2(high) - low_log;
  const double first = quick_exp2(power * low_log), last = quick_exp2(power * (low_log + span));
  for (size_t i = 0; i < out.size(); ++i) {
    const double u = from + (static_cast<double>(i) + 0.5) * step;
    out[i] = quick_exp2(logarithmic ? low_log + u * span : quick_log2(first + u * (last - first)) / power);
  }
}

// Tokens of the first rank's experts where tokens take turns, the busiest first.
std::vector<double> first_rank_counts(const MoeShape& shape) {
  const int64_t local = std::max<int64_t>(1, shape.experts / std::max<int64_t>(1, shape.ep));
  const std::vector<double>& shares = shape.popularity->shares;
  std::vector<double> counts(shares.begin(), shares.begin() + std::min(local, std::ssize(shares)));
  const auto tokens = static_cast<double>(shape.tokens), top_k = static_cast<double>(shape.top_k);
  for (double& count : counts) count = std::min(1.0, count * top_k) * tokens;
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return counts;
}

// The sum of the first `length` counts, of which the last may be a part.
double sum_of_first(std::span<const double> counts, double length) {
  double sum = 0;
  for (size_t i = 0; i < counts.size() && static_cast<double>(i) < length; ++i) {
    sum += counts[i] * std::min(1.0, length - static_cast<double>(i));
  }
  return sum;
}

// Experts that every token chooses stand apart; the others are cut into parts of equal number unless all are alike.
void group_by_turns(const MoeShape& shape, ExpertGroups& groups) {
  const std::vector<double> counts = first_rank_counts(shape);
  const auto tokens = static_cast<double>(shape.tokens);
  const auto others = std::find_if(counts.begin(), counts.end(), [&](double count) { return count < tokens; });
  const auto none = std::find(others, counts.end(), 0.0);
  const std::span<const double> rest(others, none);
  groups.busy = std::min(static_cast<double>(others - counts.begin()), groups.active);
  groups.busy_size = tokens;
  const double left = groups.active - groups.busy, pairs = std::max(0.0, groups.pairs - groups.busy * tokens);
  const bool alike = rest.empty() || rest.front() - rest.back() <= 1e-9 * rest.front();
  groups.count = alike ? 1 : ExpertGroups::most;
  groups.experts = left / groups.count;
  if (alike) groups.size[0] = left > 0 ? pairs / left : 0;
  if (alike || left <= 0) return;
  const double scale = pairs / sum_of_first(rest, left);
  for (int i = 0; i < groups.count; ++i) {
    const double part = sum_of_first(rest, (i + 1) * groups.experts) - sum_of_first(rest, i * groups.experts);
    groups.size[i] = std::clamp(part / groups.experts * scale, 1.0, tokens);
  }
}

// Tokens of the first experts, of which so many are active; the last may be a part.
double pairs_of_first(std::span<const ExpertLoad> experts, double active) {
  double pairs = 0;
  for (const ExpertLoad& expert : experts) {
    if (active <= 0) break;
    pairs += expert.pairs * std::min(1.0, active / expert.active_experts);
    active -= expert.active_experts;
  }
  return pairs;
}

// Groups of equal number, the busiest experts first. A rank's experts are taken to differ as those of all ranks do.
void group_by_popularity(const MoeShape& shape, double most_tokens, ExpertGroups& groups) {
  std::vector<ExpertLoad> experts = loads_of_experts(*shape.popularity, static_cast<double>(shape.tokens), shape.top_k);
  std::sort(experts.begin(), experts.end(), [](const ExpertLoad& a, const ExpertLoad& b) { return a.pairs > b.pairs; });
  double active = 0, pairs = 0;
  for (const ExpertLoad& expert : experts) {
    active += expert.active_experts;
    pairs += expert.pairs;
  }
  groups.count = ExpertGroups::most;
  groups.experts = groups.active / groups.count;
  const double share = active / groups.count, scale = groups.pairs / pairs / groups.experts;
  for (int i = 0; i < groups.count; ++i) {
    const double part = pairs_of_first(experts, (i + 1) * share) - pairs_of_first(experts, i * share);
    groups.size[i] = std::clamp(part * scale, 1.0, most_tokens);
  }
}

ExpertGroups solve_groups(const MoeShape& shape, const MoeKernel& kernel) {
  const ExpertLoad load = expert_load(shape);
  ExpertGroups groups;
  groups.active = std::max(load.active_experts, 1e-3);
  groups.pairs = load.pairs;
  const auto tokens = static_cast<double>(shape.tokens), top_k = static_cast<double>(shape.top_k);
  const double repeats = kernel.repeats_local_experts ? std::min(static_cast<double>(shape.ep), top_k) : 1;
  groups.pairs = std::min(groups.pairs * repeats, tokens * top_k);
  groups.pairs = std::max(groups.pairs, groups.active);
  groups.experts = groups.active;
  groups.size[0] = groups.pairs / groups.active;
  if (shape.routing == Routing::balanced || groups.size[0] < 1.5) return groups;
  if (shape.routing == Routing::measured && shape.popularity->takes_turns) {
    group_by_turns(shape, groups);
    return groups;
  }
  if (shape.routing == Routing::measured && shape.popularity->scattered) {
    group_by_popularity(shape, tokens * repeats, groups);
    return groups;
  }
  if (shape.routing == Routing::random || shape.routing == Routing::measured) {
    // Sixths of a normal distribution, which the counts of many experts come near to where all are alike. Of unequal
    // ones only the sums are known here.
    constexpr double deviations[ExpertGroups::most] = {-1.383, -0.674, -0.210, 0.210, 0.674, 1.383};
    const double mean = groups.size[0], deviation = std::sqrt(mean);
    groups.count = ExpertGroups::most;
    groups.experts = groups.active / groups.count;
    for (int i = 0; i < groups.count; ++i) groups.size[i] = std::max(1.0, mean + deviations[i] * deviation);
    return groups;
  }

  // The active experts are the upper quantiles of the law that the loads are drawn from.
  groups.count = ExpertGroups::most;
  groups.experts = groups.active / groups.count;
  const bool dense = tokens * top_k > static_cast<double>(shape.experts);
  const double low = dense ? 1 : 0.01, high = dense ? std::max(1.001, 0.8 * tokens) : 2;
  const double local = std::max(1.0, static_cast<double>(shape.experts / std::max<int64_t>(1, shape.ep)));
  const double idle = std::max(0.0, 1 - groups.active / local);
  power_law_quantiles(shape.power_law_exponent, low, high, idle, groups.size);
  double sum = 0;
  for (const double size : groups.size) sum += size;
  const double scale = groups.pairs / groups.experts / sum;
  for (double& size : groups.size) size = std::clamp(size * scale, 1.0, tokens * repeats);
  return groups;
}

struct Question {
  int64_t tokens = 0, top_k = 0, experts = 0, ep = 0;
  double exponent = 0;
  bool repeats = false;
  std::shared_ptr<const ExpertPopularity> popularity = nullptr;
  bool operator==(const Question&) const = default;
};

struct QuestionHash {
  size_t operator()(const Question& q) const {
    uint64_t hash = std::bit_cast<uint64_t>(q.exponent) + (q.repeats ? 1 : 0) +
                    std::hash<std::shared_ptr<const ExpertPopularity>>()(q.popularity);
    for (const int64_t part : {q.tokens, q.top_k, q.experts, q.ep}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

}  // namespace

const MoeKernel& moe_kernel(std::string_view name, const MoeShape& shape, const DeviceTraits& device) {
  const MoeKernel& kernel = named(name);
  if (kernel.name == untuned_cutlass_of_hopper.name && shape.scheme == Scheme::fp8 && is_hopper(device))
    return untuned_cutlass_of_hopper;
  if (kernel.name == name) return kernel;
  if (shape.scheme == Scheme::int4_wo || shape.scheme == Scheme::int8_wo) return named("marlin");
  // MXFP4 checkpoints (gpt-oss): vLLM, fused_moe/oracle/mxfp4.py.
  if (shape.scheme == Scheme::mxfp4_wo) {
    if (device.generation->experts == ExpertKernels::generated) return named("fi_trtllm_mono");
    return named(is_hopper(device) ? "oai_triton" : "marlin");
  }
  switch (device.generation->experts) {
    case ExpertKernels::generated:
      return named("fi_trtllm");
    case ExpertKernels::cutlass:
      return named("fi_cutlass");
    case ExpertKernels::triton:
      break;
  }
  // vLLM hands experts that several ranks share to FlashInfer on Hopper: its Triton kernels take blocks of fp8 on one
  // rank only (the dispatcher's choice in the measurements).
  if (shape.scheme == Scheme::fp8_block && shape.ep > 1 && device.asynchronous) return named("fi_cutlass");
  return named("triton");
}

std::string_view kernel_of_received(const MoeShape& shape, const DeviceTraits& device) {
  const bool has_format = shape.scheme == Scheme::fp8_block || shape.scheme == Scheme::bf16;
  // DeepGEMM (its README) has kernels for sm_90 and sm_100, and engines run them after a dispatch. Generated kernels
  // are those of sm_100 and sm_103.
  const bool has_kernels = is_hopper(device) || device.generation->experts == ExpertKernels::generated;
  if (!shape.received || !has_format || !has_kernels) return {};
  return arrives_sorted(shape) ? "deepgemm_masked" : "deepgemm_contiguous";
}

std::vector<std::string_view> moe_kernel_names() {
  std::vector<std::string_view> names;
  for (const MoeKernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

double ExpertGroups::tiles(double rows) const {
  double sum = 0;
  if (count == 1) {  // even load: experts get one token more or less
    const double least = std::floor(size[0]), more = size[0] - least;
    sum = (1 - more) * std::ceil(least / rows) + more * std::ceil((least + 1) / rows);
  } else {
    // Sizes vary within a group: a last tile is half full on average.
    for (int i = 0; i < count; ++i) sum += size[i] <= rows ? 1 : size[i] / rows + 0.5;
  }
  return std::max(active, experts * sum + busy * std::ceil(busy_size / rows));
}

ExpertGroups expert_groups(const MoeShape& shape, const MoeKernel& kernel) {
  if (shape.routing == Routing::balanced || shape.routing == Routing::random) return solve_groups(shape, kernel);
  const Question question{.tokens = shape.tokens,
                          .top_k = shape.top_k,
                          .experts = shape.experts,
                          .ep = shape.ep,
                          .exponent = shape.power_law_exponent,
                          .repeats = kernel.repeats_local_experts,
                          .popularity = shape.popularity};
  // The answer is a function of the question alone, so it does not matter what is remembered.
  constexpr size_t most_remembered = 20'000;
  thread_local std::unordered_map<Question, ExpertGroups, QuestionHash> remembered;
  if (const auto found = remembered.find(question); found != remembered.end()) return found->second;
  if (remembered.size() >= most_remembered) remembered.clear();
  return remembered[question] = solve_groups(shape, kernel);
}

}  // namespace foretoken
