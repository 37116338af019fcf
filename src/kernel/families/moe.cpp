// The fused expert MLP of a mixture-of-experts layer, as one rank sees it.
#include "base/text.h"
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {
namespace moe {
namespace {

enum Parameter { variant, number_format, tokens, hidden, inter, topk, experts, tp, ep, routing, gated, received };
constexpr double is_gated = 1, gated_by_shape = 2, by_ranks = 2;
// Inside a node engines gather the tokens of all ranks by default, and sweeps timed kernels on those (vLLM's
// allgather_reducescatter, SGLang without an a2a backend). DeepEP is for more ranks.
constexpr double ranks_that_gather = 8;

// Tables of measurements have no column for it: the two shapes without a gate are the Nemotron ones.
bool has_gate(KernelValues v) {
  if (v[gated] != gated_by_shape) return v[gated] == is_gated;
  const bool nemotron = (v[hidden] == 2688 && v[inter] == 1856) || v[topk] == 22;
  return !nemotron;
}

// "balanced", or "pl1.2": a power law with that exponent.
std::optional<double> parse_routing(std::string_view text) {
  if (!starts_with_ignoring_case(text, "pl")) return std::nullopt;
  const std::optional<double> exponent = parse_number(text.substr(2));
  return exponent && *exponent > 0 && *exponent <= 10 ? exponent : std::nullopt;
}

std::optional<Misfit> misfit(KernelValues v) {
  if (v[topk] > v[experts]) return Misfit{topk, "at most the number of experts"};
  if (count(v[experts]) % count(v[ep]) != 0) return Misfit{ep, "a divisor of experts"};
  if (count(v[inter]) % count(v[tp]) != 0) return Misfit{tp, "a divisor of inter"};
  return std::nullopt;
}

KernelParameter expert_count(std::string name, std::string help, std::string example) {
  KernelParameter parameter = size_parameter(std::move(name), std::move(help), std::move(example));
  parameter.range.most = 65536;
  return parameter;
}

KernelParameter routing_parameter() {
  KernelParameter parameter =
      choice_parameter("routing", "balanced, or plA: a power law with exponent A, where the most loaded rank counts",
                       {"balanced"}, "balanced");
  parameter.parse = parse_routing;
  parameter.further = "plA with A up to 10 (such as pl1.2)";
  return parameter;
}

KernelShape moe_shape(KernelValues v) {
  return MoeShape{.tokens = count(v[tokens]),
                  .hidden = count(v[hidden]),
                  .inter = count(v[inter]),
                  .top_k = count(v[topk]),
                  .experts = count(v[experts]),
                  .tp = count(v[tp]),
                  .ep = count(v[ep]),
                  .gated = has_gate(v),
                  .routing = v[routing] > 0 ? Routing::power_law : Routing::balanced,
                  .power_law_exponent = v[routing],
                  .scheme = scheme(v[number_format]),
                  .received = v[received] == by_ranks ? v[ep] > ranks_that_gather : v[received] == 1};
}

}  // namespace
}  // namespace moe

KernelFamily moe_family() {
  return {
      .name = "moe",
      .summary = "fused expert MLP of one rank: two grouped multiplies, activation, permutation",
      .parameters = {variant_parameter(),
                     scheme_parameter("dtype", "how weights and activations are stored and multiplied"),
                     size_parameter("tokens", "tokens entering the layer over the whole expert-parallel group", "1024"),
                     size_parameter("hidden", "width of the model", "4096"),
                     size_parameter("inter", "width of an expert, unsharded", "1536"),
                     moe::expert_count("topk", "experts per token", "8"),
                     moe::expert_count("experts", "experts of the layer, all ranks", "128"),
                     size_parameter_or("tp", "tensor-parallel ranks an expert is cut into", "1"),
                     size_parameter_or("ep", "expert-parallel ranks", "1"), moe::routing_parameter(),
                     choice_parameter("gated",
                                      "three matrices per expert, else two; auto: three, except the Nemotron shapes",
                                      {"no", "yes", "auto"}, "auto"),
                     choice_parameter("received",
                                      "the rank gets only the tokens of its own experts (DeepEP), else it scans "
                                      "the tokens of all ranks; auto: yes if ep is above 8. A named kernel decides",
                                      {"no", "yes", "auto"}, "auto")},
      .shape = moe::moe_shape,
      .misfit = moe::misfit};
}

}  // namespace foretoken
