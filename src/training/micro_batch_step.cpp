// One micro-batch of a training step, by operator.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "training/iteration_internal.h"

namespace foretoken {

// Pieces in the order of the forward pass, then backwards.
StageEstimate IterationModel::micro_batch_stage(const TrainingPlan& plan, const ChunkMix& mix,
                                                const PlanPieces& pieces) {
  struct Piece {
    size_t kind = 0;
    bool recomputed = false;
    double times = 1;
  };
  std::vector<Piece> order;
  each_piece(mix, [&](size_t kind, bool recomputed, double times) { order.push_back({kind, recomputed, times}); });
  const auto place = [&](const Piece& piece) {
    return piece.kind == kinds_.size() ? 0 : piece.kind < kinds_.size() ? 1 : 2;  // embedding, layers, head
  };
  std::stable_sort(order.begin(), order.end(), [&](const Piece& a, const Piece& b) { return place(a) < place(b); });

  std::vector<Operator> calls;
  std::vector<TimedLaunch> launches;
  const auto add = [&](Operator call, TimedLaunch timed, int64_t count) {
    call.count = count;
    timed.launch.call = calls.size();
    timed.launch.name = call.name;
    timed.launch.count = count;
    calls.push_back(std::move(call));
    launches.push_back(std::move(timed));
  };
  const auto add_calls = [&](const Piece& piece, Pass pass) {
    const PieceCosts& costs = costs_of(piece.kind, plan);
    const auto run = [&](const PieceCall& one, double factor, bool again) {
      const auto count =
          std::max<int64_t>(1, std::llround(static_cast<double>(one.call.count) * costs.share * piece.times));
      Operator call = one.call;
      call.name = one.timed.launch.name;  // one of several kernels of the operator
      if (again) {
        call.name += "_again";
        call.pass = Pass::backward;
      }
      TimedLaunch timed = one.timed;
      timed.seconds = scaled(timed.seconds, factor * piece.times);
      timed.work = scaled(timed.work, costs.share * piece.times);
      add(std::move(call), std::move(timed), count);
    };
    // A pass over memory that no operator stands for.
    const auto stream = [&](const char* name, double seconds) {
      if (seconds <= 0) return;
      const double bytes = seconds * bandwidth_;
      const ElementwiseShape shape{.elements = std::llround(bytes / 4), .flops_per_element = 0};
      const Work work{.activations_read = Bytes(bytes / 2), .written = Bytes(bytes / 2)};
      Estimate time = exactly(seconds);
      time.kind = stack_.confidence();
      add({.name = name, .part = StepPart::feed_forward, .pass = pass, .shape = shape},
          {.launch = {.shape = shape},
           .kernel = KernelEstimate{.seconds = time, .work = work, .memory = Seconds(seconds)},
           .seconds = scaled(time, piece.times),
           .work = scaled(work, piece.times)},
          std::max<int64_t>(1, std::llround(piece.times)));
    };
    for (size_t i = 0; i < training_pass_count; ++i) {
      const auto own_pass = static_cast<TrainingPass>(i);
      const PassFactors factors = pass_factors(piece.kind, plan, costs, own_pass);
      const bool forward = own_pass == TrainingPass::forward;
      const bool again = forward && pass == Pass::backward;  // what is computed again comes first
      if (again ? !piece.recomputed || piece.kind >= kinds_.size() : forward != (pass == Pass::forward)) continue;
      for (const PieceCall& one : costs.calls) {
        const double factor = factors.of[static_cast<size_t>(one.kind)];
        const double share = again ? repeated_of(piece.kind, plan, one) : 1;
        if (one.pass != own_pass || factor <= 0 || share <= 0) continue;
        run(one, share * factor, again);
      }
      if (again && plan.recompute != Recompute::full) continue;
      stream("casts", factors.cast);
      stream("expert_moves", factors.move);
    }
  };
  for (const Piece& piece : order) add_calls(piece, Pass::forward);
  std::reverse(order.begin(), order.end());
  for (const Piece& piece : order) add_calls(piece, Pass::backward);

  StageEstimate stage = stage_of_launches(std::move(calls), std::move(launches), machine_.kernels->correlations(),
                                          Stack{}, {.kind = Dispatch::fused});
  const TimeParts parts = chunk_time(mix, pieces, plan).parts;
  stage.time.host_stall = at(parts, TimePart::host);
  stage.time.seconds += stage.time.host_stall;
  StageErrors errors(machine_.kernels->correlations());
  each_piece(mix, [&](size_t kind, bool recomputed, double times) {
    add_errors(errors, kind, plan, pieces.of(kind, recomputed), recomputed, times);
  });
  const Estimate known = errors.calls.total();
  stage.seconds = with_stack_interval({.value = stage.time.seconds,
                                       .low = stage.time.seconds - (known.value - known.low),
                                       .high = stage.time.seconds + (known.high - known.value),
                                       .kind = known.kind},
                                      stack_.interval_for(job_.model, stack_use(plan)),
                                      stack_.confidence_for(job_.model, stack_use(plan)));
  return stage;
}

StepEstimate IterationModel::micro_batch_step(const TrainingPlan& plan) {
  ensure(plan.virtual_stages == 1 && plan.micro_batches() == 1 && gathers_of(plan) == 0,
         "one micro-batch on whole stages that hold their parameters");
  const PipelineLayout& layout = layout_of(plan);
  const PlanPieces& pieces = pieces_of(plan);
  StepEstimate step{.request = {.phase = StepPhase::train,
                                .batch = plan.micro_batch,
                                .input_len = job_.sequence_length,
                                .routing = job_.routing,
                                .lora = job_.lora,
                                .recompute = plan.recompute == Recompute::full},
                    .plan = plan.parallel,
                    .stack = stack_.name};
  for (const size_t mix : layout.mix_of_chunk) {
    step.stages.push_back(micro_batch_stage(plan, layout.mixes[mix], pieces));
    step.stages.back().memory =
        rank_memory(job_.model, step.request, plan.parallel, static_cast<int64_t>(step.stages.size()) - 1);
  }
  complete_step(step, job_.model, machine_.kernels->device());
  return step;
}

}  // namespace foretoken
