// Dense MLPs and mixtures of experts.
#include <algorithm>

#include "model/step_internal.h"
#include "model/work.h"

namespace foretoken::step {
namespace {

struct MlpNames {
  std::string_view gate_up, up, activation, down;
};
constexpr MlpNames dense_names{"gate_up_proj", "up_proj", "activation", "down_proj"};
// Trained routers send more tokens to some experts than to others. NVIDIA's AIConfigurator describes layers of many
// experts by a power law with this exponent, and the busiest rank counts. Mixtral's eight are nearly alike (arXiv
// 2401.04088, section 5). Deployments that send each token to its experts even the load out (EPLB).
constexpr double usual_exponent = 1.2;
constexpr int64_t few_experts = 8;

constexpr MlpNames shared_names{"shared_gate_up", "shared_up", "shared_activation", "shared_down"};

void write_dense(Writer& writer, const MlpNames& names, StepPart part, int64_t rows, int64_t width, bool gated,
                 bool shares_input) {
  const Model& model = writer.model();
  writer.linear({.name = gated ? names.gate_up : names.up,
                 .m = rows,
                 .n = width * (gated ? 2 : 1),
                 .k = model.hidden,
                 .part = part,
                 .scheme = model.scheme,
                 .adapted = Adapted::mlp,
                 .slices = gated ? 2 : 1,
                 .from_stream = true,
                 .shares_input = shares_input});
  writer.activation(names.activation, part, rows, width, gated);
  writer.linear({.name = names.down,
                 .m = rows,
                 .n = model.hidden,
                 .k = width,
                 .part = part,
                 .scheme = model.scheme,
                 .adapted = Adapted::mlp});
}

// Tokens that experts work on: all, or what a capacity leaves of each prompt when they are evenly routed.
int64_t routed_tokens(const Moe& moe, const StackTokens& tokens) {
  if (moe.capacity == 0) return tokens.tokens();
  const int64_t most = std::max<int64_t>(1, moe.experts * moe.capacity / moe.top_k);
  return tokens.prompts * std::min(tokens.local_prompt_len(), most) + tokens.decodes;
}

// Bytes of one token copy on its way to an expert: as the expert's multiply wants it.
double dispatched_bytes(const Model& model) {
  const SchemeFacts& scheme = facts(model.expert_scheme);
  return scheme.quantizes_activations ? scheme.activation_bytes : bytes_per_element(model.dtype);
}

}  // namespace

void write_mlp(Writer& writer, const Mlp& mlp, bool shares_input) {
  write_dense(writer, dense_names, StepPart::feed_forward, writer.tokens().tokens(), mlp.width / writer.rank().tensor,
              mlp.gated, shares_input);
}

void write_moe(Writer& writer, const Moe& moe) {
  constexpr StepPart part = StepPart::experts;
  const Model& model = writer.model();
  const Rank& rank = writer.rank();
  const int64_t tokens = writer.tokens().tokens();
  // Dispatching ranks work on their own share of the tensor group's tokens until the experts' results are back.
  const int64_t rows = rank.dispatches() ? ceil_divide(tokens, rank.tensor) : tokens;
  const int64_t dense_cut = rank.dispatches() ? 1 : rank.tensor;
  const Scheme plain = plain_scheme(model.dtype);

  if (!rank.dispatches()) writer.open_block();
  writer.linear({.name = "router",
                 .m = rows,
                 .n = moe.experts,
                 .k = model.hidden,
                 .part = part,
                 .scheme = plain,
                 .from_stream = !rank.dispatches()});
  if (moe.router_is_table) {
    writer.add("router_table", part, EmbeddingShape{.tokens = rows, .width = moe.top_k, .dtype = DType::fp32})
        .backward = false;
  }
  writer.add("router_top_k", part, SoftmaxShape{.rows = rows, .width = moe.experts, .dtype = DType::fp32},
             4 * number(rows) * number(moe.experts));
  if (moe.shared_width > 0) {
    write_dense(writer, shared_names, part, rows, moe.shared_width / dense_cut, moe.gated, true);
    if (moe.shared_gate) {
      writer.linear({.name = "shared_gate",
                     .m = rows,
                     .n = 1,
                     .k = model.hidden,
                     .part = part,
                     .scheme = plain,
                     .shares_input = true});
      writer.activation("shared_gate_activation", part, rows, model.hidden, true);
    }
  }
  if (moe.dense_width > 0) {
    write_dense(writer, dense_names, StepPart::feed_forward, rows, moe.dense_width / dense_cut, moe.gated, true);
  }

  const int64_t width = moe.latent_width > 0 ? moe.latent_width : model.hidden;
  if (moe.latent_width > 0) {
    writer.linear({.name = "latent_down_proj",
                   .m = rows,
                   .n = width,
                   .k = model.hidden,
                   .part = part,
                   .scheme = model.scheme,
                   .shares_input = true});
    writer.norm("latent_norm", part, rows, width, false);
  }
  MoeShape experts{.tokens = routed_tokens(moe, writer.tokens()) * rank.dispatch_groups,
                   .hidden = width,
                   .inter = moe.width,
                   .top_k = moe.top_k,
                   .experts = moe.experts,
                   .tp = rank.expert_tensor,
                   .ep = rank.expert_ranks,
                   .gated = moe.gated,
                   .routing = writer.request().routing.value_or(Routing::random),
                   .power_law_exponent = writer.request().power_law_exponent,
                   .scheme = model.expert_scheme};
  const bool travels = rank.dispatches() && rank.exchange == ExpertExchange::all_to_all;
  if (!writer.request().routing && moe.experts > few_experts && !travels && !writer.training()) {
    experts.routing = Routing::power_law;
    experts.power_law_exponent = usual_exponent;
  }
  if (model.expert_popularity != nullptr) {
    experts.routing = Routing::measured;
    experts.popularity = model.expert_popularity;
  }
  const auto travel = [&](std::string_view name, CollectiveKind gathered, double bytes, bool returns) {
    if (!rank.dispatches()) return;
    const bool gathers = rank.exchange == ExpertExchange::all_gather;
    const double copies = number(rows) * number(gathers ? rank.expert_ranks : moe.top_k) * number(width);
    ForwardOperator& call = writer.collective(name, gathers ? gathered : CollectiveKind::all_to_all,
                                              ParallelAxis::expert, rank.expert_ranks, copies * bytes);
    std::get<CollectiveShape>(call.shape).returns = returns;
  };
  travel("ep_dispatch", CollectiveKind::all_gather, dispatched_bytes(model), false);
  experts.received = travels && !writer.training();
  experts.kernels = rank.exchange_kernels;
  const bool sorts = experts.received && !arrives_sorted(experts);
  const auto sorted_copy = [&](std::string_view name, DType dtype) {
    if (!sorts) return;
    const auto values = static_cast<int64_t>(expert_load(experts).pairs * number(width));
    writer.add(name, part,
               ElementwiseShape{.elements = std::max<int64_t>(1, values), .flops_per_element = 0, .dtype = dtype});
  };
  sorted_copy("expert_sort", facts(model.expert_scheme).activation_bytes < 2 ? DType::fp8 : model.dtype);
  // Kept for the backward pass: each routed copy's input, gate and up, and their product.
  double saved = 0;
  if (writer.training()) {
    saved = expert_load(experts).pairs *
            (number(width) + number(moe.width) / number(rank.expert_tensor) * (moe.gated ? 3 : 2)) *
            writer.activation_bytes();
  }
  writer.add("experts", part, experts, saved);
  sorted_copy("expert_unsort", model.dtype);
  travel("ep_combine", CollectiveKind::reduce_scatter, writer.activation_bytes(), true);
  if (moe.latent_width > 0) {
    writer.linear(
        {.name = "latent_up_proj", .m = rows, .n = model.hidden, .k = width, .part = part, .scheme = model.scheme});
  }
  if (!rank.dispatches()) {
    writer.close_block();
  } else if (rank.tensor > 1 && !rank.sequence) {  // give every tensor rank all tokens again
    writer.collective("tp_all_gather", CollectiveKind::all_gather, ParallelAxis::tensor, rank.tensor,
                      number(rows * rank.tensor) * number(model.hidden) * writer.activation_bytes());
  }
}

}  // namespace foretoken::step
