// A profiled rank under another parallel plan, after Lumos (Liang et al., "Lumos: Efficient Performance Modeling and
// Estimation for Large-scale LLM Training", MLSys 2025): which share of its work a kernel keeps, and what its messages
// cost before and after.
#pragma once

#include <optional>

#include "base/estimate.h"
#include "compose/profile/kernel_class.h"
#include "compose/profile/kernel_shape.h"
#include "compose/profile/trace.h"
#include "model/step.h"
#include "network/rank_network.h"

namespace foretoken {

// How a job runs: the recorded one, or the one asked for.
struct TraceJob {
  ParallelPlan plan;
  const RankNetwork* network = nullptr;  // under that plan; null = not known: communication keeps its time
};

// What a kernel has to do under the new plan.
struct KernelWork {
  Estimate share = exactly(1);         // of its recorded time, by the plan alone
  std::optional<ProfiledShape> shape;  // then; nothing where the trace has no sizes
};

// Tensor parallelism divides one size of each multiply, the heads of attention, and tensors that are not as wide as the
// hidden state. With ParallelPlan::sequence it also divides those. A sharded optimizer is divided among data-parallel
// ranks.
class KernelSplit {
 public:
  KernelSplit(const ProfiledStep& step, const ParallelPlan& recorded, const ParallelPlan& wanted);

  // `call` may be null. `shape` as shape_of_kernel() gives it. InputError where heads cannot be divided.
  KernelWork work_of(const ProfiledKernel& kernel, const ProfiledOperator* call, const KernelClass& kind,
                     const std::optional<ProfiledShape>& shape) const;

  // Bytes of a micro-batch's hidden state in 16 bits; nothing where the trace has no sizes.
  std::optional<double> hidden_bytes() const;
  // How often attention runs, forward and backward: once for each layer and micro-batch.
  int64_t attention_passes() const { return attention_passes_; }
  // Bytes of the weights that the forward multiplies read, under the new plan, of all micro-batches.
  double weight_bytes() const { return weight_bytes_ * tensor_share_; }

 private:
  void find_sizes(const ProfiledStep& step);
  bool is_as_wide_as_hidden(const ProfiledOperator& call) const;
  KernelShape divided(KernelShape shape, const ProfiledOperator* call, bool& is_certain) const;

  ParallelPlan recorded_, wanted_;
  double tensor_share_ = 1;          // of what tensor-parallel ranks divide
  bool shards_optimizer_ = false;    // data-parallel ranks gather or scatter
  int64_t tokens_ = 0, hidden_ = 0;  // of the multiplies; 0 = the trace has no sizes
  double weight_bytes_ = 0;
  int64_t attention_passes_ = 0;
};

// The network's times of one message in the recorded job and in the one asked for.
struct MessageTimes {
  Estimate before, after;          // microseconds
  bool waits_in_pipeline = false;  // for another stage
};

class MessagePrices {
 public:
  MessagePrices(const TraceJob& recorded, const TraceJob& wanted) : recorded_(recorded), wanted_(wanted) {}

  // The axis of the plan that a message's group lies along, by the group's size and the distance of its ranks (TP
  // innermost, PP outermost); nothing where no axis, or more than one, fits.
  std::optional<ParallelAxis> axis_of(const ProfiledMessage& message) const;
  // Nothing where the axis or a network is not known.
  std::optional<MessageTimes> times_of(const ProfiledMessage& message) const;

 private:
  Estimate microseconds(const TraceJob& job, const CollectiveShape& shape) const;

  TraceJob recorded_, wanted_;
};

}  // namespace foretoken
