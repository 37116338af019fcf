// Which training plans there are for a job on so many devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "training/training_plan.h"

namespace foretoken {

// What is left open: sizes without a value are tried out.
struct PlanChoices {
  std::optional<int64_t> tensor, pipeline, context, expert, virtual_stages, micro_batch;
  int64_t most_tensor = 0;                  // 0 = a fast domain of the cluster
  int64_t most_micro_batch = 16;            // powers of two up to here
  int64_t fewest_context_tokens = 1024;     // of a sequence on one context rank
  std::vector<std::string> schedules = {};  // of pipelines; empty = those that the stack can run
  std::vector<Sharding> shardings = {};     // empty = those of the stack
  int64_t parts_of_layers = 8;              // full recomputation of so many parts of a chunk's layers; 1 = of all
  std::vector<Recompute> recomputes = {};   // empty = those of the stack
};

// What a space of plans is drawn from. All devices take part.
struct PlanSpace {
  const Model* model = nullptr;
  int64_t sequence_length = 2048;
  int64_t devices = 1, global_batch = 1;
  int64_t fast_domain = 1;                                       // devices that tensor ranks may lie in
  std::vector<std::string> schedules = {"1f1b", "interleaved"};  // where no choice names any
  std::vector<Sharding> shardings = {Sharding::none, Sharding::optimizer, Sharding::parameters};  // the same
  std::vector<Recompute> recomputes = {Recompute::none, Recompute::selective, Recompute::full};   // the same
  bool shards_pipelines = false;                  // parameters are sharded beside several stages too
  bool keeps_scores = false;                      // unfused attention: selective recomputation spares something
  TrainingPlan start;                             // what no choice is about: how context ranks exchange keys and values
  std::vector<std::vector<ChunkLayers>> layouts;  // balanced_layouts of the model
  PlanChoices choices;
};

// Tensor, context and expert ranks: what one rank computes depends on these and the micro-batch, not on the pipeline.
struct RankSizes {
  int64_t tensor = 1, context = 1, expert = 1;
  bool operator==(const RankSizes&) const = default;
};
std::vector<RankSizes> rank_sizes(const PlanSpace& space);

// Every way to cut layers into stages and chunks and the batch into micro-batches with these sizes: valid plans that
// keep and share nothing. Layers divide evenly, counting the loss, or embedding and loss, as one each where that makes
// them (as Megatron-LM does); where none of that does, a layout says what each chunk holds. Tensor ranks go with
// sequence parallelism.
std::vector<TrainingPlan> pipeline_plans(const PlanSpace& space, const RankSizes& sizes);

// The plan with every kind of recomputation, of all layers or of some eighths of each chunk, and of sharding; those of
// one recomputation in a row. Of several kinds of sharding, that of parameters is left out where there are stages,
// unless shards_pipelines: each micro-batch would gather them anew. Parameters are also sharded inside each node, with
// a copy on every node (HSDP).
std::vector<TrainingPlan> memory_plans(const PlanSpace& space, const TrainingPlan& plan);

}  // namespace foretoken
