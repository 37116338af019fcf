// One optimizer step of a training job on a machine -> its time, and where it goes.
#pragma once

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "model/model.h"
#include "training/piece_costs.h"
#include "training/pipeline_layout.h"
#include "training/schedule/pipeline_schedule.h"
#include "training/training_plan.h"
#include "training/training_recipe.h"
#include "training/training_stack.h"

namespace foretoken {

// What is trained, whatever the plan.
struct TrainingJob {
  Model model;
  int64_t sequence_length = 2048;
  TrainingRecipe recipe = training_recipe("bf16");
  LoraAdapter lora;                     // rank 0: all parameters are trained
  Routing routing = Routing::balanced;  // of tokens to experts; published runs force balance
  double expert_capacity = 0;           // see PieceRequest
  int64_t packed_length = 0;            // see PieceRequest
  double optimizer_state_bytes = 12;    // of each trained parameter: Adam's master weight and moments in fp32
};

// Where a step's time goes, on the stage that works longest.
enum class TimePart : uint8_t {
  linear,
  attention,
  experts,
  passes,      // over memory: norms, activations, loss, casts, moving tokens to experts
  recompute,   // forward again in the backward pass
  accumulate,  // adding gradients of micro-batches
  tensor,      // communication that is not hidden, by group
  context,
  expert,
  sharded,  // gathers of sharded parameters
  host,     // the device waits for the host
  bubble,   // the stage waits for others
  data,     // gradients and parameters, once a step
  optimizer,
  step,  // what comes once a step besides
};
inline constexpr size_t time_part_count = 15;
using TimeParts = std::array<double, time_part_count>;
std::string_view time_part_name(TimePart part);
std::string_view time_part_meaning(TimePart part);

struct IterationEstimate {
  Estimate seconds;
  TimeParts parts{};      // sums to seconds.value
  PipelineWork pipeline;  // chunks as they were run
  PipelineRun run;
  int64_t slowest_stage = 0;
  std::vector<double> stage_parameters;  // trained ones, held by one rank of each stage
  double tokens_per_second = 0;          // of all devices
  double tokens_per_second_per_device = 0;
};

// What one device of a stage sends to the next for one micro-batch.
double pipeline_message_bytes(const TrainingJob& job, const TrainingPlan& plan, const TrainingStack& stack);

// Plans of one job on one machine under one stack. What a layer costs is kept from plan to plan, so that looking at
// many is cheap; not safe to share between threads.
class IterationModel {
 public:
  IterationModel(TrainingJob job, TrainingStack stack, TrainingMachine machine);

  // The plan must be valid (check_plan).
  IterationEstimate estimate(const TrainingPlan& plan);

  // The step time alone, for searches: the pipeline by formula (schedule/closed_form.h). Never more than
  // estimate(plan).seconds.value, but for rounding.
  double quick_seconds(const TrainingPlan& plan);

  // For fits: other constants than the stack's.
  void use_constants(const TrainingConstants& constants);

 private:
  struct PieceTime {
    ChunkTimes times;
    TimeParts parts{};
    double parameters = 0;  // shared and of experts
    double shared = 0;
  };
  // All that the costs of a piece depend on, besides the job.
  struct PieceKey {
    size_t kind = 0;
    int64_t micro_batch = 1, tensor = 1, context = 1, expert = 1, data = 1;
    bool sequence = false;
    ExpertExchange exchange = ExpertExchange::all_to_all;
    ContextExchange context_exchange = ContextExchange::ring;
    auto operator<=>(const PieceKey& other) const = default;
  };
  // The times of all pieces under one plan.
  struct PlanPieces {
    std::vector<PieceTime> recomputed, spared;  // by kind of layer
    PieceTime embedding, head;
  };
  // All that they depend on besides the costs: how parameters are gathered (0 = not at all) and over whom.
  struct PlanPiecesKey {
    PieceKey costs;
    Recompute recompute = Recompute::none;
    bool accumulates = false;
    int gathers = 0;
    int64_t shard_ranks = 0, expert_shard_ranks = 0;
    auto operator<=>(const PlanPiecesKey& other) const = default;
  };
  struct CollectiveKey {
    CollectiveKind kind = CollectiveKind::all_reduce;
    double bytes = 0;
    int64_t ranks = 0, stride = 0;
    auto operator<=>(const CollectiveKey& other) const = default;
  };
  // Trained parameters of one rank: all, and those that all data and context ranks hold.
  struct HeldParameters {
    double all = 0, shared = 0;
  };
  struct OnceAStep {
    double data = 0, optimizer = 0, rest = 0;
  };

  static PieceKey piece_key(size_t kind, const TrainingPlan& plan, const ParallelPlan& needed);
  const PieceCosts& costs_of(size_t kind, const TrainingPlan& plan);
  PieceTime time_of(size_t kind, const TrainingPlan& plan, bool recomputed);
  int gathers_of(const TrainingPlan& plan) const;
  void add_sharded_traffic(const PieceCosts& costs, const TrainingPlan& plan, PieceTime& time);
  const PlanPieces& pieces_of(const TrainingPlan& plan);
  const PipelineLayout& layout_of(const TrainingPlan& plan);
  PieceTime chunk_time(const ChunkMix& mix, const PlanPieces& pieces, int64_t virtual_stages) const;
  double send_seconds(const TrainingPlan& plan);
  double data_seconds(const TrainingPlan& plan, HeldParameters held);
  double optimizer_pass_bytes() const;
  OnceAStep once_a_step(const TrainingPlan& plan, HeldParameters held);
  double collective(CollectiveKind kind, double bytes, const ProcessGroup& group);

  TrainingJob job_;
  TrainingStack stack_;
  TrainingMachine machine_;
  TrainingConstants constants_;
  double bandwidth_ = 0;      // of the device's memory, B/s
  std::vector<Layer> kinds_;  // different layers
  std::vector<size_t> kind_of_layer_, kind_of_draft_;
  // Kept from plan to plan. Times last as long as the constants.
  std::map<PieceKey, PieceCosts> costs_;
  std::map<PlanPiecesKey, PlanPieces> pieces_;
  std::map<LayoutKey, PipelineLayout> layouts_;
  std::map<CollectiveKey, double> collectives_;
  // Of quick_seconds(), to spare allocations.
  PipelineWork quick_work_;
  std::vector<PieceTime> quick_times_;
  std::vector<HeldParameters> quick_held_;
};

}  // namespace foretoken
