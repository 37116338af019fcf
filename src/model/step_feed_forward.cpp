// Dense MLPs and mixtures of experts.
#include <algorithm>

#include "model/expert_popularity.h"
#include "model/step_internal.h"
#include "model/work.h"

namespace foretoken::step {
namespace {

struct MlpNames {
  std::string_view gate_up, up, activation, down;
};
constexpr MlpNames dense_names{"gate_up_proj", "up_proj", "activation", "down_proj"};
// Trained routers send more tokens to some experts than to others. NVIDIA's AIConfigurator describes layers of many
// experts by a power law with this exponent, and the busiest rank counts; power_law_popularity draws from it. Mixtral's
// eight are nearly alike (arXiv 2401.04088, section 5). Deployments that send each token to its experts even the load
// out (EPLB).
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

class MoeLayer {
 public:
  MoeLayer(Writer& to, const Moe& moe)
      : writer_(to),
        moe_(moe),
        rows_(rows_of(writer_)),
        width_(moe.latent_width > 0 ? moe.latent_width : writer_.model().hidden),
        travels_(rank().dispatches() && rank().exchange == ExpertExchange::all_to_all) {}

  void write() const {
    if (!rank().dispatches()) writer_.open_block();
    write_router();
    write_beside();
    if (moe_.latent_width > 0) write_latent_input();
    write_experts(expert_shape());
    if (moe_.latent_width > 0) {
      writer_.linear({.name = "latent_up_proj",
                      .m = rows_,
                      .n = model().hidden,
                      .k = width_,
                      .part = part,
                      .scheme = model().scheme});
    }
    if (!rank().dispatches()) {
      writer_.close_block();
    } else if (rank().tensor > 1 && !rank().sequence) {  // give every tensor rank all tokens again
      writer_.collective("tp_all_gather", CollectiveKind::all_gather, ParallelAxis::tensor, rank().tensor,
                         number(rows_ * rank().tensor) * number(model().hidden) * writer_.activation_bytes());
    }
  }

 private:
  static constexpr StepPart part = StepPart::experts;

  const Model& model() const { return writer_.model(); }
  const Rank& rank() const { return writer_.rank(); }

  // Dispatching ranks work on their own share of the tensor group's tokens until the experts' results are back.
  static int64_t rows_of(const Writer& writer) {
    const int64_t tokens = writer.tokens().tokens();
    return writer.rank().dispatches() ? ceil_divide(tokens, writer.rank().tensor) : tokens;
  }

  void write_router() const {
    writer_.linear({.name = "router",
                    .m = rows_,
                    .n = moe_.experts,
                    .k = model().hidden,
                    .part = part,
                    .scheme = plain_scheme(model().dtype),
                    .from_stream = !rank().dispatches()});
    if (moe_.router_is_table) {
      writer_.add("router_table", part, EmbeddingShape{.tokens = rows_, .width = moe_.top_k, .dtype = DType::fp32})
          .backward = false;
    }
    writer_.add("router_top_k", part, SoftmaxShape{.rows = rows_, .width = moe_.experts, .dtype = DType::fp32},
                4 * number(rows_) * number(moe_.experts));
  }

  // Layers that every token goes through beside its experts.
  void write_beside() const {
    const int64_t cut = rank().dispatches() ? 1 : rank().tensor;
    if (moe_.shared_width > 0) {
      write_dense(writer_, shared_names, part, rows_, moe_.shared_width / cut, moe_.gated, true);
      if (moe_.shared_gate) {
        writer_.linear({.name = "shared_gate",
                        .m = rows_,
                        .n = 1,
                        .k = model().hidden,
                        .part = part,
                        .scheme = plain_scheme(model().dtype),
                        .shares_input = true});
        writer_.activation("shared_gate_activation", part, rows_, model().hidden, true);
      }
    }
    if (moe_.dense_width > 0) {
      write_dense(writer_, dense_names, StepPart::feed_forward, rows_, moe_.dense_width / cut, moe_.gated, true);
    }
  }

  void write_latent_input() const {
    writer_.linear({.name = "latent_down_proj",
                    .m = rows_,
                    .n = width_,
                    .k = model().hidden,
                    .part = part,
                    .scheme = model().scheme,
                    .shares_input = true});
    writer_.norm("latent_norm", part, rows_, width_, false);
  }

  MoeShape expert_shape() const {
    const StepRequest& request = writer_.request();
    MoeShape experts{.tokens = routed_tokens(moe_, writer_.tokens()) * rank().dispatch_groups,
                     .hidden = width_,
                     .inter = moe_.width,
                     .top_k = moe_.top_k,
                     .experts = moe_.experts,
                     .tp = rank().expert_tensor,
                     .ep = rank().expert_ranks,
                     .gated = moe_.gated,
                     .routing = request.routing.value_or(Routing::random),
                     .power_law_exponent = request.power_law_exponent,
                     .scheme = model().expert_scheme};
    if (!request.routing && moe_.experts > few_experts && !travels_ && !writer_.training()) {
      experts.routing = Routing::power_law;
      experts.power_law_exponent = usual_exponent;
    }
    // Drawn by each token, and not dealt out as a benchmark does.
    if (experts.routing == Routing::power_law && moe_.experts <= most_experts_of_a_layer) {
      experts.routing = Routing::measured;
      experts.popularity = power_law_popularity(moe_.experts, experts.power_law_exponent,
                                                writer_.tokens().prompt_tokens() * rank().dispatch_groups);
    }
    if (model().expert_popularity != nullptr) {
      experts.routing = Routing::measured;
      experts.popularity = model().expert_popularity;
    }
    experts.received = travels_ && !writer_.training();
    experts.kernels = rank().exchange_kernels;
    return experts;
  }

  void write_experts(const MoeShape& experts) const {
    travel("ep_dispatch", CollectiveKind::all_gather, dispatched_bytes(model()), false);
    sort_copies("expert_sort", experts, facts(model().expert_scheme).activation_bytes < 2 ? DType::fp8 : model().dtype);
    // Kept for the backward pass: each routed copy's input, gate and up, and their product.
    double saved = 0;
    if (writer_.training()) {
      saved = expert_load(experts).pairs *
              (number(width_) + number(moe_.width) / number(rank().expert_tensor) * (moe_.gated ? 3 : 2)) *
              writer_.activation_bytes();
    }
    writer_.add("experts", part, experts, saved);
    sort_copies("expert_unsort", experts, model().dtype);
    travel("ep_combine", CollectiveKind::reduce_scatter, writer_.activation_bytes(), true);
  }

  void travel(std::string_view name, CollectiveKind gathered, double bytes, bool returns) const {
    if (!rank().dispatches()) return;
    const bool gathers = rank().exchange == ExpertExchange::all_gather;
    const double copies = number(rows_) * number(gathers ? rank().expert_ranks : moe_.top_k) * number(width_);
    ForwardOperator& call = writer_.collective(name, gathers ? gathered : CollectiveKind::all_to_all,
                                               ParallelAxis::expert, rank().expert_ranks, copies * bytes);
    std::get<CollectiveShape>(call.shape).returns = returns;
  }

  // Received tokens are put in the experts' order, and back, where the exchange does not do it.
  void sort_copies(std::string_view name, const MoeShape& experts, DType dtype) const {
    if (!experts.received || arrives_sorted(experts)) return;
    const auto values = static_cast<int64_t>(expert_load(experts).pairs * number(width_));
    writer_.add(name, part,
                ElementwiseShape{.elements = std::max<int64_t>(1, values), .flops_per_element = 0, .dtype = dtype});
  }

  Writer& writer_;
  const Moe& moe_;
  int64_t rows_;
  int64_t width_;  // that experts take in
  bool travels_;   // tokens go to their experts' ranks one by one
};

}  // namespace

void write_mlp(Writer& writer, const Mlp& mlp, bool shares_input) {
  write_dense(writer, dense_names, StepPart::feed_forward, writer.tokens().tokens(), mlp.width / writer.rank().tensor,
              mlp.gated, shares_input);
}

void write_moe(Writer& writer, const Moe& moe) {
  MoeLayer(writer, moe).write();
}

}  // namespace foretoken::step
