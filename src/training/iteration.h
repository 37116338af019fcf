// One optimizer step of a training job on a machine -> its time, where it goes, and how sure that is.
//
// Errors: calls of one device go together as its calibration says (call_errors.h); collectives of one group, which
// share links, are off by the same share. The stages of a pipeline run the same kernels, so waiting for others is off
// by the same share as the work of the busiest stage. What the stack's constants say has no error of its own: the
// interval of the stack's runs is for that.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "compose/step_estimate.h"
#include "model/model.h"
#include "training/call_errors.h"
#include "training/piece_costs.h"
#include "training/pipeline_layout.h"
#include "training/schedule/pipeline_schedule.h"
#include "training/time_part.h"
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
  Dropout dropout;
  double frozen_weight_bytes = 2;       // of the base under adapters; less than 2: expanded before each multiply
  double gathered_parameter_bytes = 2;  // of each sharded parameter on its way to ranks that compute with it
  double gradient_bytes = 0;            // of each, as they are summed and travel; 0 = as the stack has it
  double optimizer_state_bytes = 12;    // of each trained parameter: Adam's master weight and moments in fp32
  int64_t orthogonal_steps = 0;         // Newton-Schulz iterations of the optimizer on each matrix of a layer (Muon)
  bool updates_weights = false;         // weights in 16 bits are all there is of them: no copy in fp32
  bool clips_gradients = true;          // by their norm
};

// Fine-tuning: of adapters, or of all weights on packed examples.
inline bool is_tuning(const TrainingJob& job) {
  return job.lora.rank > 0 || job.packed_length > 0;
}

// Kernels of one family in a step, on the busiest stage.
struct FamilySeconds {
  std::string family;
  Estimate seconds;
};

struct IterationEstimate {
  Estimate seconds;
  Estimate composed;  // the same with the errors of its kernels and collectives alone
  // Values sum to seconds.value. Parts that rest on constants of the stack alone have no width.
  std::array<Estimate, time_part_count> parts{};
  std::vector<FamilySeconds> families;  // the longest first
  PipelineWork pipeline;                // chunks as they were run
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

  // The same without intervals: nothing has a width.
  IterationEstimate values(const TrainingPlan& plan);

  // estimate(plan).seconds.value.
  double seconds(const TrainingPlan& plan) { return values(plan).seconds.value; }

  // For searches: the pipeline by formula (schedule/closed_form.h), so never more seconds than
  // estimate(plan).seconds.value, but for rounding.
  struct QuickStep {
    double seconds = 0, optimizer = 0;       // of the whole step, and of it the optimizer's
    const PipelineWork* pipeline = nullptr;  // chunks as estimate(plan) runs them; until the next call
  };
  QuickStep quick_step(const TrainingPlan& plan);
  double quick_seconds(const TrainingPlan& plan) { return quick_step(plan).seconds; }

  // One micro-batch, forward and backward, as the plan's ranks run it: what `estimate` is made of, by operator. Gathers
  // of sharded parameters, sums over micro-batches and what comes once a step are left out.
  StepEstimate micro_batch_step(const TrainingPlan& plan);

  // Of one micro-batch in the first layer by itself.
  ChunkTimes first_layer(const TrainingPlan& plan);

  // For fits: other constants than the stack's.
  void use_constants(const TrainingConstants& constants);

 private:
  // Making the update of whole matrices orthogonal; ranks that share an optimizer's state divide the matrices.
  struct Orthogonalization {
    double seconds = 0, matrices = 0;
    void add(const Orthogonalization& other, double times) {
      seconds += times * other.seconds;
      matrices += times * other.matrices;
    }
    double on_ranks(double ranks) const { return seconds / std::max(1.0, std::min(ranks, matrices)); }
  };
  struct PieceTime {
    ChunkTimes times;
    TimeParts parts{};
    double parameters = 0;  // shared and of experts
    double shared = 0;
    Orthogonalization shared_matrices = {}, expert_matrices = {};
    double host = 0;       // launching it; it takes no less
    double slow_host = 0;  // what it takes longer on the slower of 90% of hosts
    Estimate sharded;      // gathers that are not hidden
  };
  // What the stack makes of a pass: a factor for each kind of call, and passes over memory that the kernel layer does
  // not know of.
  struct PassFactors {
    std::array<double, cost_kind_count> of{};
    double context_slope = 0;  // of the time that is not hidden, by the traffic
    double cast = 0, move = 0;
  };
  struct StageErrors;
  // A piece's calls, and the number of each one's shape.
  struct KnownPiece {
    PieceCosts costs;
    std::vector<size_t> shapes;
  };
  // All that the costs of a piece depend on, besides the job.
  struct PieceKey {
    size_t kind = 0;
    int64_t micro_batch = 1, tensor = 1, context = 1, expert = 1, data = 1;
    bool sequence = false;
    ExpertExchange exchange = ExpertExchange::all_to_all;
    ContextExchange context_exchange = ContextExchange::ring;
    TokenDispatcher dispatcher = TokenDispatcher::usual;
    auto operator<=>(const PieceKey& other) const = default;
  };
  // The times of all pieces under one plan.
  struct PlanPieces {
    std::vector<PieceTime> recomputed, spared;  // by kind of layer
    PieceTime embedding, head;
    const PieceTime& of(size_t kind, bool again) const;
  };
  // All that they depend on besides the costs: how parameters are gathered (0 = not at all) and over whom.
  struct PlanPiecesKey {
    PieceKey costs;
    Recompute recompute = Recompute::none;
    LayerModules modules;
    bool accumulates = false;
    int gathers = 0;
    int64_t shard_ranks = 0, expert_shard_ranks = 0;
    TrafficOverlaps overlaps;
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
    Orthogonalization shared_matrices = {}, expert_matrices = {};
    void add(const PieceTime& piece) {
      all += piece.parameters;
      shared += piece.shared;
      shared_matrices.add(piece.shared_matrices, 1);
      expert_matrices.add(piece.expert_matrices, 1);
    }
  };
  struct OnceAStep {
    Estimate data;
    double optimizer = 0, rest = 0;
  };

  static PieceKey piece_key(size_t kind, const TrainingPlan& plan, const ParallelPlan& needed);
  const KnownPiece& known_piece(size_t kind, const TrainingPlan& plan);
  const PieceCosts& costs_of(size_t kind, const TrainingPlan& plan) { return known_piece(kind, plan).costs; }
  PieceTime time_of(size_t kind, const TrainingPlan& plan, bool recomputed);
  bool is_unfused(size_t kind) const;
  const Stack* kernels_of_stack() const;
  PassFactors pass_factors(size_t kind, const TrainingPlan& plan, const PieceCosts& costs, TrainingPass pass) const;
  // The pieces of a chunk: visit(kind, among those computed again, how many).
  template <class Visit>
  void each_piece(const ChunkMix& mix, const Visit& visit) const;
  // How much of a call the backward pass of a layer runs again.
  double repeated_of(size_t kind, const TrainingPlan& plan, const PieceCall& call) const;
  double recompute_seconds(size_t kind, const TrainingPlan& plan, const PieceCosts& costs, double forward) const;
  double move_share_of_activation(size_t kind) const;
  double expand_seconds(const PieceCosts& costs) const;
  // Adds the calls of one piece, so many times.
  void add_errors(StageErrors& errors, size_t kind, const TrainingPlan& plan, const PieceTime& time, bool recomputed,
                  double times);
  void add_widths(IterationEstimate& result, const TrainingPlan& plan);
  StageEstimate micro_batch_stage(const TrainingPlan& plan, const ChunkMix& mix, const PlanPieces& pieces);
  int gathers_of(const TrainingPlan& plan) const;
  bool scatters_micro_batches(const TrainingPlan& plan) const;
  void add_host(size_t kind, const TrainingPlan& plan, bool recomputed, PieceTime& time);
  void add_weight_casts(const TrainingPlan& plan, PieceTime& time) const;
  void add_sharded_traffic(const PieceCosts& costs, const TrainingPlan& plan, PieceTime& time);
  const PlanPieces& pieces_of(const TrainingPlan& plan);
  const PipelineLayout& layout_of(const TrainingPlan& plan);
  PieceTime chunk_time(const ChunkMix& mix, const PlanPieces& pieces, const TrainingPlan& plan) const;
  double send_seconds(const TrainingPlan& plan);
  Estimate data_seconds(const TrainingPlan& plan, HeldParameters held, double beside);
  double optimizer_pass_bytes() const;
  Orthogonalization orthogonalization(const PieceCosts& costs, bool of_experts) const;
  OnceAStep once_a_step(const TrainingPlan& plan, HeldParameters held, double beside);
  Estimate collective(CollectiveKind kind, double bytes, const ProcessGroup& group);
  StackUse stack_use(const TrainingPlan& plan) const {
    return {.device = &machine_.kernels->device(),
            .adapters = job_.lora.rank > 0,
            .tuning = is_tuning(job_),
            .devices = plan.devices(),
            .sequence_length = job_.sequence_length,
            .expert_ranks = plan.parallel.expert};
  }

  TrainingJob job_;
  TrainingStack stack_;
  TrainingMachine machine_;
  TrainingConstants constants_{};
  double bandwidth_ = 0;      // of the device's memory, B/s
  bool hides_tensor_ = true;  // the stack does, in this number format
  std::vector<Layer> kinds_;  // different layers
  std::vector<size_t> kind_of_layer_, kind_of_draft_;
  // Kept from plan to plan. Times last as long as the constants.
  std::map<PieceKey, KnownPiece> costs_;
  std::vector<KernelShape> shapes_;  // different ones of all calls
  std::map<PlanPiecesKey, PlanPieces> pieces_;
  std::map<LayoutKey, PipelineLayout> layouts_;
  std::map<CollectiveKey, Estimate> collectives_;
  // Of quick_step(), to spare allocations.
  PipelineWork quick_work_;
  std::vector<PieceTime> quick_times_;
  std::vector<HeldParameters> quick_held_;
};

}  // namespace foretoken
