// How a model is trained on many devices: who holds what, in which order micro-batches run, what is kept and what is
// computed again. Names follow Megatron-LM's flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "model/part_memory.h"
#include "model/step.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// What of a layer is computed again in the backward pass instead of being kept.
//   none       nothing
//   selective  some modules of it: the attention core (arXiv 2205.05198) unless others are named
//   full       the whole layer; its input alone is kept
//   op         all but every other multiply and the attention core (torchtitan's selective mode "op")
enum class Recompute : uint8_t { none, selective, full, op };
// Modules of the model that cost little to compute again: norms, activations of experts, up-projections of latent
// attention.
LayerModules cheap_modules(const Model& model);
std::string_view recompute_name(Recompute recompute);
std::optional<Recompute> recompute_from_name(std::string_view name);
std::vector<std::string> recompute_names();

// Who keeps one part only of what data-parallel replicas have in common (ZeRO's stages, arXiv 1910.02054).
// `parameters` is PyTorch's FSDP.
enum class Sharding : uint8_t { none, optimizer, gradients, parameters };
std::string_view sharding_name(Sharding sharding);
std::optional<Sharding> sharding_from_name(std::string_view name);
std::vector<std::string> sharding_names();

// How context ranks get keys and values of each other.
//   all_gather  all of them before the attention (Llama 3)
//   ring        one block after the other, behind the attention of the block before
//   all_to_all  every rank gets all tokens of some heads (Ulysses)
enum class ContextExchange : uint8_t { ring, all_gather, all_to_all };
std::string_view context_exchange_name(ContextExchange exchange);
std::optional<ContextExchange> context_exchange_from_name(std::string_view name);
std::vector<std::string> context_exchange_names();

// Whether a communication runs beside computing.
//   published  as in the published runs of the stack
//   off        everybody waits for it
//   on         what does not fit beside the computing that can hide it is waited for, unless the stack hides more
enum class TrafficOverlap : uint8_t { published, off, on };
struct TrafficOverlaps {
  TrafficOverlap gradients = TrafficOverlap::published;   // their reduction over replicas
  TrafficOverlap parameters = TrafficOverlap::published;  // their gathering after a sharded optimizer step
  TrafficOverlap tensor = TrafficOverlap::published;
  TrafficOverlap experts = TrafficOverlap::published;
  auto operator<=>(const TrafficOverlaps&) const = default;
};

// What carries tokens to their experts and back.
//   usual       the stack's own, as its published runs had it
//   all_to_all  every copy of a token, sorted by expert before and after
//   deepep      a token once to each rank that has some of its experts (DeepEP's normal kernels)
//   hybridep    the same inside an NVLink domain of any size, once to each node beyond it (HybridEP)
enum class TokenDispatcher : uint8_t { usual, all_to_all, deepep, hybridep };
std::string_view token_dispatcher_name(TokenDispatcher dispatcher);
std::optional<TokenDispatcher> token_dispatcher_from_name(std::string_view name);
std::vector<std::string> token_dispatcher_names();

// Layers first, ..., first + count - 1 of the model, with the embedding before and the head after them; draft layers
// come after the last layer.
struct ChunkLayers {
  int64_t first = 0, count = 0;
  bool embedding = false, head = false;
  int64_t drafts = 0;  // layers that predict one token more; more than the model has = all of them
  auto operator<=>(const ChunkLayers&) const = default;
};
inline constexpr int64_t all_drafts = int64_t{1} << 20;

struct TrainingPlan {
  // `data` counts replicas; context ranks are not among them. Groups lie on the devices with tensor ranks side by side,
  // then context, then data, pipeline stages farthest apart.
  ParallelPlan parallel;
  int64_t micro_batch = 1;                                       // sequences
  int64_t global_batch = 1;                                      // sequences of one optimizer step
  std::string schedule = "1f1b";                                 // see schedule/pipeline_schedule.h
  int64_t virtual_stages = 1;                                    // chunks of layers on each pipeline rank
  std::optional<int64_t> first_stage_layers, last_stage_layers;  // of the whole rank; the others share the rest evenly
  bool embedding_in_split = false, loss_in_split = false;        // count as a layer when layers are shared out
  std::vector<ChunkLayers> layout;  // what each chunk holds, in the order a micro-batch passes them; empty = shared out
  Sharding sharding = Sharding::none;
  int64_t shard_ranks = 0;  // of data x context ranks that share one copy (HSDP); 0 = all
  Recompute recompute = Recompute::none;
  LayerModules recompute_modules = {LayerModule::core_attn};  // selective
  int64_t recompute_layers = 0;                               // full: so many layers of each chunk only; 0 = all
  ContextExchange context_exchange = ContextExchange::ring;
  TokenDispatcher dispatcher = TokenDispatcher::usual;
  TrafficOverlaps overlaps;

  int64_t micro_batches() const { return global_batch / (micro_batch * parallel.data); }
  int64_t devices() const { return parallel.tensor * parallel.context * parallel.pipeline * parallel.data; }
  int64_t stages() const { return parallel.pipeline; }
  int64_t chunks() const { return parallel.pipeline * virtual_stages; }
  int64_t sharded_over() const;          // ranks that share the optimizer state of what all data x context ranks hold
  int64_t experts_sharded_over() const;  // of those, ranks that hold the same routed experts
};

// The fewest replicas of a single stage whose ranks do the same work and hold the same: others change that only through
// the experts they share, and through having gradients to reduce at all.
ParallelPlan without_needless_replicas(ParallelPlan plan);

// The plan's pipeline, its chunks still without times.
PipelineWork pipeline_work(const TrainingPlan& plan);

// The chunks in the order a micro-batch passes through them: the plan's layout, or layers shared out evenly, those that
// do not divide leaving one less to the outer chunks. The plan must be valid.
std::vector<ChunkLayers> chunk_layers(const TrainingPlan& plan, int64_t layers);

// One thing that is wrong with a plan.
struct PlanProblem {
  std::string field;  // of the question: tensor_model_parallel_size
  std::string value;
  std::string why;                   // "64 attention heads do not divide by it"
  std::vector<std::string> nearest;  // values of the field nearest to the one given that would do, all else equal
};

// Everything that is wrong, in the order of the fields; empty = the plan can run. `devices` is what the cluster has;
// 0 = not known.
std::vector<PlanProblem> plan_problems(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                                       int64_t devices);
// Whether there are none; quick, for searches.
bool is_valid_plan(const Model& model, int64_t sequence_length, const TrainingPlan& plan, int64_t devices);
// One InputError that lists them all.
void check_plan(const Model& model, int64_t sequence_length, const TrainingPlan& plan, int64_t devices);

}  // namespace foretoken
