// How sure the time of a step is.
#include <algorithm>

#include "training/iteration_internal.h"

namespace foretoken {

double IterationModel::repeated_of(size_t kind, const TrainingPlan& plan, const PieceCall& call) const {
  if (call.pass != TrainingPass::forward) return 0;
  switch (plan.recompute) {
    case Recompute::none:
      return 0;
    case Recompute::full:
      return stack_.stops_recompute_early && job_.lora.rank == 0 && ends_layer(call.call.name, call.call.part) ? 0 : 1;
    case Recompute::selective:
      // A flash kernel computes its scores again anyway.
      if (call.kind == CostKind::attention) {
        return is_unfused(kind) && plan.recompute_modules.has(LayerModule::core_attn) ? 1 : 0;
      }
      return repeated_share(plan.recompute_modules, call.call.name, call.call.part);
    case Recompute::op:
      if (call.kind == CostKind::passes) return 1;
      return call.kind == CostKind::linear || call.kind == CostKind::quantized || call.kind == CostKind::experts ? 0.5
                                                                                                                 : 0;
  }
  return 0;
}

void IterationModel::add_errors(StageErrors& errors, size_t kind, const TrainingPlan& plan, const PieceTime& time,
                                bool recomputed, double times) {
  const KnownPiece& piece = known_piece(kind, plan);
  const PieceCosts& costs = piece.costs;
  const ErrorCorrelations& correlations = machine_.kernels->correlations();
  CallErrors own(correlations);
  PassFactors factors[training_pass_count];
  for (size_t pass = 0; pass < training_pass_count; ++pass) {
    factors[pass] = pass_factors(kind, plan, costs, static_cast<TrainingPass>(pass));
  }
  for (size_t i = 0; i < costs.calls.size(); ++i) {
    const PieceCall& one = costs.calls[i];
    const size_t shape = piece.shapes[i];
    const PassFactors& pass = factors[static_cast<size_t>(one.pass)];
    const double factor = pass.of[static_cast<size_t>(one.kind)];
    Estimate seconds = scaled(one.timed.seconds, factor);
    if (one.kind == CostKind::context) {
      const double slope = pass.context_slope;
      seconds.low = std::max(0.0, seconds.value - slope * (one.timed.seconds.value - one.timed.seconds.low));
      seconds.high = seconds.value + slope * (one.timed.seconds.high - one.timed.seconds.value);
    }
    if (seconds.value <= 0) continue;
    const double again = recomputed ? repeated_of(kind, plan, one) : 0;
    own.add(scaled(seconds, 1 + again), one.form, shape);
    errors.part(part_of_calls(one.kind)).add(scaled(seconds, times), one.form, shape);
    if (again > 0) errors.part(TimePart::recompute).add(scaled(seconds, again * times), one.form, shape);
    if (!one.timed.kernel) continue;
    errors.families.try_emplace(family_name(one.timed.launch.shape), correlations)
        .first->second.add(scaled(seconds, (1 + again) * times), one.form, shape);
  }
  // What is not among the calls has no width: a piece takes as long as its calls and that, or as its host.
  const Estimate calls = own.total();
  const double rest = time.times.sum() - time.sharded.value - at(time.parts, TimePart::host) - calls.value;
  const WidthShares shares = widths_beside(calls, time.host - rest);
  errors.calls.add(own, times, shares.below, shares.above);
  if (time.sharded.value > 0) {
    errors.part(TimePart::sharded).add(scaled(time.sharded, times), "collective");
    errors.calls.add(scaled(time.sharded, times), "collective");
  }
}

void IterationModel::add_widths(IterationEstimate& result, const TrainingPlan& plan) {
  const PipelineLayout& layout = layout_of(plan);
  const PlanPieces& pieces = pieces_of(plan);
  const size_t chunks = layout.mix_of_chunk.size();
  std::vector<double> mix_counts(layout.mixes.size(), 0);
  for (size_t i = 0; i < layout.stage_of.size(); ++i) {
    if (layout.stage_of[i] != static_cast<size_t>(result.slowest_stage)) continue;
    mix_counts[layout.mix_of_chunk[i % chunks]] +=
        static_cast<double>(plan.micro_batches()) / static_cast<double>(layout.copies);
  }
  StageErrors errors(machine_.kernels->correlations());
  for (size_t i = 0; i < mix_counts.size(); ++i) {
    if (mix_counts[i] == 0) continue;
    each_piece(layout.mixes[i], [&](size_t kind, bool recomputed, double times) {
      add_errors(errors, kind, plan, pieces.of(kind, recomputed), recomputed, times * mix_counts[i]);
    });
  }
  // `part` with so many times the widths of `own`, which may be less of it.
  const auto widen = [](Estimate& part, const Estimate& own, double times = 1) {
    if (own.value <= 0) return;
    part = {.value = part.value,
            .low = part.value - times * (own.value - own.low),
            .high = part.value + times * (own.high - own.value),
            .kind = own.kind};
  };
  for (size_t i = 0; i < time_part_count; ++i) widen(result.parts[i], errors.parts[i].total());
  Estimate& bubble = result.parts[static_cast<size_t>(TimePart::bubble)];
  const double waits = std::max(0.0, bubble.value) / (result.run.seconds - bubble.value);
  widen(bubble, errors.calls.total(), waits);

  CallErrors whole(machine_.kernels->correlations());
  whole.add(errors.calls, 1 + waits);
  const Estimate& data = result.parts[static_cast<size_t>(TimePart::data)];
  if (data.value > 0) whole.add(data, "collective");
  result.composed = result.seconds;
  widen(result.composed, whole.total());
  double slow_host = 0;
  for (size_t i = 0; i < mix_counts.size(); ++i) {
    each_piece(layout.mixes[i], [&](size_t kind, bool recomputed, double times) {
      slow_host += mix_counts[i] * times * pieces.of(kind, recomputed).slow_host;
    });
  }
  result.composed.high += slow_host;
  result.seconds = with_stack_interval(result.composed, stack_.interval_for(job_.model, stack_use(plan)),
                                       stack_.confidence_for(job_.model, stack_use(plan)));
  for (const auto& [family, calls] : errors.families) {
    result.families.push_back({.family = std::string(family), .seconds = calls.total()});
  }
  std::stable_sort(result.families.begin(), result.families.end(),
                   [](const FamilySeconds& a, const FamilySeconds& b) { return a.seconds.value > b.seconds.value; });
}

}  // namespace foretoken
