// Shared by the step_*.cpp files; nobody else includes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/number_formats.h"
#include "model/shapes.h"
#include "model/step.h"

namespace foretoken::step {

constexpr double number(int64_t count) {
  return static_cast<double>(count);
}
constexpr int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// What a plan means for one rank.
struct Rank {
  int64_t tensor = 1, context = 1, data = 1;
  bool sequence = false;        // only where tensor > 1
  int64_t expert_ranks = 1;     // ranks the experts are spread over
  int64_t expert_tensor = 1;    // ranks that share one expert's width
  int64_t dispatch_groups = 1;  // tensor groups whose tokens meet in the experts; 1 = nothing is sent
  ExpertExchange exchange = ExpertExchange::all_to_all;
  ExchangeKernels exchange_kernels = ExchangeKernels::by_tokens;

  bool dispatches() const { return dispatch_groups > 1; }
  int64_t kv_heads(int64_t heads) const { return heads <= tensor ? 1 : heads / tensor; }
};
Rank make_rank(const ParallelPlan& plan);

// The tokens one stack of layers sees. Lengths are those of whole sequences; local_* are this context rank's.
struct StackTokens {
  int64_t prompts = 0, prompt_len = 0, prompt_context = 0;
  int64_t decodes = 0, decode_context = 0;
  int64_t encoder_len = 0;  // keys of the cross attention
  int64_t context_ranks = 1;

  int64_t chunk() const { return ceil_divide(prompt_len, 2 * context_ranks); }  // two per context rank
  int64_t local_prompt_len() const { return context_ranks == 1 ? prompt_len : 2 * chunk(); }
  int64_t prompt_tokens() const { return prompts * local_prompt_len(); }
  int64_t tokens() const { return prompt_tokens() + decodes; }
  int64_t prompt_keys() const { return prompt_context + prompt_len; }
  int64_t decode_keys() const { return decode_context + 1; }
  int64_t local_decode_keys() const { return ceil_divide(decode_keys(), context_ranks); }
};
StackTokens decoder_tokens(const Model& model, const StepRequest& request, const Rank& rank);  // or the only stack's
StackTokens encoder_tokens(const StepRequest& request, const StackTokens& decoder);

// An operator of the forward pass with what the backward pass and the memory count need to know of it.
struct ForwardOperator {
  std::string_view name;
  StepPart part = StepPart::attention;
  KernelShape shape;
  std::string_view suffix;  // _lora_a, _lora_b
  int64_t count = 1;
  double saved_bytes = 0;                // kept for the backward pass
  bool in_layer = false;                 // recomputation repeats it
  bool first_norm = false;               // opens a layer: has no residual to add in the very first one
  bool forward = true, backward = true;  // a collective may belong to one pass alone

  bool is_adapter() const { return !suffix.empty(); }
  std::string full_name() const { return std::string(name) += suffix; }
};

enum class Adapted { no, attention, mlp };

struct Linear {
  std::string_view name;
  int64_t m = 1, n = 1, k = 1;
  StepPart part = StepPart::attention;
  Scheme scheme = Scheme::bf16;
  Adapted adapted = Adapted::no;
  int64_t slices = 1;         // matrices fused into this one; each has an adapter of its own
  bool from_stream = false;   // the input is the layer's, which sequence parallelism stores cut
  bool shares_input = false;  // another operator already keeps the input
};

// Collects the operators of one layer (or of embedding and head).
class Writer {
 public:
  Writer(const Model& model, const StepRequest& request, const Rank& rank, const StackTokens& tokens)
      : model_(model), request_(request), rank_(rank), tokens_(tokens) {}

  const Model& model() const { return model_; }
  const StepRequest& request() const { return request_; }
  const Rank& rank() const { return rank_; }
  const StackTokens& tokens() const { return tokens_; }
  bool training() const { return request_.phase == StepPhase::train; }
  DType kv_dtype() const { return training() ? model_.dtype : request_.kv_dtype; }
  double activation_bytes() const { return bytes_per_element(model_.dtype); }
  int64_t stream_rows() const {  // tokens of the residual stream on this rank
    return rank_.sequence ? ceil_divide(tokens_.tokens(), rank_.tensor) : tokens_.tokens();
  }
  double stream_bytes() const { return number(tokens_.tokens()) * number(model_.hidden) * activation_bytes(); }

  ForwardOperator& add(std::string_view name, StepPart part, KernelShape shape, double saved_bytes = 0);
  void linear(const Linear& linear);
  ForwardOperator& norm(std::string_view name, StepPart part, int64_t rows, int64_t width, bool layer_norm,
                        bool adds_residual = false);
  void activation(std::string_view name, StepPart part, int64_t rows, int64_t width, bool gated);
  ForwardOperator& collective(std::string_view name, CollectiveKind kind, ParallelAxis axis, int64_t ranks,
                              double bytes);

  void open_block();   // sequence parallelism: collect all tokens
  void close_block();  // sum the tensor ranks' parts

  ForwardOperator& last() { return operators_.back(); }
  std::vector<ForwardOperator> take() { return std::move(operators_); }

 private:
  const Model& model_;
  const StepRequest& request_;
  const Rank& rank_;
  const StackTokens& tokens_;
  std::vector<ForwardOperator> operators_;
};

// Token mixers, without norm and the tensor ranks' collectives around them.
void write_attention(Writer& writer, const Attention& attention);
void write_cross_attention(Writer& writer, const Attention& attention);
void write_latent_attention(Writer& writer, const LatentAttention& attention);
void write_compressed_attention(Writer& writer, const CompressedAttention& attention);
void write_recurrent(Writer& writer, const GatedDelta& mixer);
void write_recurrent(Writer& writer, const Lightning& mixer);
void write_recurrent(Writer& writer, const Mamba2& mixer);
void write_recurrent(Writer& writer, const ShortConvolution& mixer);

void write_mlp(Writer& writer, const Mlp& mlp, bool shares_input);
// Experts bring their own collectives when tokens are dispatched.
void write_moe(Writer& writer, const Moe& moe);

void write_layer(Writer& writer, const Layer& layer);
void write_embedding(Writer& writer);
void write_final_norm(Writer& writer, std::string_view name);
void write_head(Writer& writer);

struct LayerCount {
  const Layer* layer = nullptr;
  int64_t count = 0;
};
std::vector<LayerCount> distinct_layers(std::span<const Layer> layers);

// One stage's forward pass.
std::vector<ForwardOperator> forward_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                                               int64_t stage);

// A step's list in the making; equal calls are merged.
class OperatorList {
 public:
  void add(std::string name, StepPart part, Pass pass, const KernelShape& shape, int64_t count);
  std::vector<Operator> take() { return std::move(operators_); }

 private:
  std::vector<Operator> operators_;
};

void add_backward(OperatorList& list, std::span<const ForwardOperator> forward, const Model& model,
                  const StepRequest& request, const ParallelPlan& plan);
void add_optimizer(OperatorList& list, std::span<const ForwardOperator> forward, const Model& model,
                   const StepRequest& request, const ParallelPlan& plan, int64_t stage);

// The layer as narrow as one rank has it. The number of experts stays: the router knows them all.
Layer local_layer(Layer layer, const Rank& rank);

// Parameters and bytes of the weights one rank holds; routed experts apart, since other ranks hold the same ones.
struct LocalWeights {
  double shared = 0, experts = 0, bytes = 0;
  double expert_copies = 1;  // of each routed expert, on average

  void add(const Weight& weight, const Rank& rank, double times);
};
// Inputs and outputs an operator holds at once, beside the residual stream.
double live_bytes(const KernelShape& shape, double activation);
double adapter_parameters(std::span<const ForwardOperator> forward);

// Parameters of one rank that a training step changes; routed experts apart, since other ranks hold the same ones.
struct TrainedParameters {
  double shared = 0, experts = 0;
};
TrainedParameters trained_parameters(std::span<const ForwardOperator> forward, const Model& model,
                                     const StepRequest& request, const ParallelPlan& plan, int64_t stage);
double embedding_table_parameters(const Model& model, const Rank& rank);  // the token table's, on one rank

}  // namespace foretoken::step
