#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"
#include "compose/profile/chakra_step.h"
#include "compose/profile/ported_trace.h"
#include "library/library.h"
#include "report/kernel/ported_trace_report.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> rank_numbers{.least = 0, .most = most_job_ranks};

// A parallel plan as users write it; 0 = not given.
struct PlanFlags {
  int64_t tensor = 0, pipeline = 0, data = 0;
  std::string node, cluster;

  bool is_given() const { return tensor > 0 || pipeline > 0 || data > 0 || !node.empty() || !cluster.empty(); }
  ParallelPlan over(const ParallelPlan& usual) const {
    ParallelPlan plan = usual;
    if (tensor > 0) plan.tensor = tensor;
    if (pipeline > 0) plan.pipeline = pipeline;
    if (data > 0) plan.data = data;
    return plan;
  }
  PlacementSpec placement() const {
    return {
        .node = node, .cluster = cluster, .order = {std::begin(training_rank_order), std::end(training_rank_order)}};
  }
};

class PortCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("trace", trace_,
                 "PyTorch profiler trace of one rank (Kineto JSON, optionally .gz), or its recorded Chakra trace (.et)",
                 true);
    options.text("--to", to_, "GPU to predict (`foretoken devices` lists them) [the one that was profiled]");
    options.text("--device", device_, "GPU that was profiled [the one that the trace names]");
    declare_kernel_source(options, tier_);
    options.heading("Job in the trace");
    options.integer("--tensor-parallel-size,-tp", recorded_.tensor, rank_numbers,
                    "-tp: tensor-parallel ranks of the job in the trace [1]");
    options.integer("--pipeline-parallel-size,-pp", recorded_.pipeline, rank_numbers,
                    "-pp: pipeline stages of the job in the trace [1]");
    options.integer("--data-parallel-size,-dp", recorded_.data, rank_numbers,
                    "-dp: data-parallel ranks of the job in the trace [all ranks that the trace names / (TP x PP)]");
    options.flag("--sequence-parallel", sequence_, "Tensor-parallel ranks also divide the tokens of norms");
    options.integer("--micro-batches", micro_batches_, {.least = 0, .most = 1 << 20},
                    "Micro-batches in the trace. --to-pp needs it for a job without a pipeline; --to-dp divides the "
                    "gradients of a job without data parallelism by it [1]");
    options.text("--node", recorded_.node, "Node that the job ran on [the usual node of the GPU]");
    options.text("--cluster", recorded_.cluster, "Cluster that the job ran on [the usual cluster of the node]");
    options.heading("Job to predict");
    options.integer("--to-tp", wanted_.tensor, rank_numbers, "Tensor-parallel ranks [as in the trace]");
    options.integer("--to-pp", wanted_.pipeline, rank_numbers, "Pipeline stages [as in the trace]");
    options.integer("--to-dp", wanted_.data, rank_numbers,
                    "Data-parallel ranks; each rank keeps its batch [as in the trace]");
    options.text("--to-node", wanted_.node, "Node to run on [--node; with --to, the usual node of that GPU]");
    options.text("--to-cluster", wanted_.cluster, "Cluster to run on [--cluster; with --to, the usual one]");
    options.footer(
        "Each measured kernel time is multiplied by the ratio of two estimates: new GPU and size over old. Kernels "
        "without sizes are\nscaled by peak rates or bandwidths: record the trace with record_shapes=True. NCCL kernels "
        "are predicted on both\nnetworks. Unchanged kernels keep their measured times.\nExamples:\n  foretoken port "
        "path/to/trace.json --to h200_sxm\n  foretoken port path/to/trace.json.gz --device a100_sxm --to b200_sxm "
        "--json\n  foretoken port path/to/trace.json -tp 2 -dp 4 --to-dp 64 --to-tp 4");
  }

  Answer run(const Library& library) const override {
    if (to_.empty() && !wanted_.is_given()) {
      throw InputError({.source = "--to",
                        .value = "not given",
                        .expected = "a GPU, or another plan with --to-tp, --to-pp or --to-dp"});
    }
    check_ranks("-tp x -pp x -dp", recorded_.over({}));
    const bool is_chakra = trace_.ends_with(".et") || trace_.ends_with(".et.gz");
    const ChakraStep read = is_chakra
                                ? read_chakra_step(trace_, recorded_.data > 0 ? rank_count(recorded_.over({})) : 0)
                                : ChakraStep{.step = read_profile(trace_), .graph = {}};
    const ProfiledStep& step = read.step;
    const KernelPredictor from = predictor(library, "--device", device_of(step));
    const KernelPredictor to = to_.empty() ? from : predictor(library, "--to", to_);
    check_gpu("--device", from.device());
    check_gpu("--to", to.device());
    const ParallelPlan recorded = plan_in(step), wanted = wanted_.over(recorded);
    check_ranks("--to-tp x --to-pp x --to-dp", wanted);
    PlanFlags target = wanted_;
    const bool moves = !target.node.empty() || !target.cluster.empty() || to.device().name != from.device().name;
    if (!moves) target.node = recorded_.node, target.cluster = recorded_.cluster;
    const auto network_before = network_of(library, from.device(), recorded, recorded_);
    const auto network_after = network_of(library, to.device(), wanted, target);
    const PortedTrace ported = port_trace(step, {.from = from,
                                                 .to = to,
                                                 .recorded = {.plan = recorded, .network = network_before.get()},
                                                 .wanted = {.plan = wanted, .network = network_after.get()},
                                                 .same_links = !moves,
                                                 .graph = is_chakra ? &read.graph : nullptr,
                                                 .micro_batches = micro_batches_});
    const PortOrigin origin{.source = step.source,
                            .from = from.device(),
                            .to = to.device(),
                            .recorded = recorded,
                            .wanted = wanted,
                            .named_in_trace = other_device_in(step, from.device(), library)};
    return {.text = ported_trace_text(ported, origin), .json = ported_trace_json(ported, origin)};
  }

 private:
  std::string device_of(const ProfiledStep& step) const {
    if (!device_.empty()) return device_;
    if (!step.device.empty()) return step.device;
    throw InputError({.source = step.source,
                      .path = "deviceProperties",
                      .value = "no device name",
                      .expected = "--device, the GPU that was profiled, because this trace does not name it"});
  }

  KernelPredictor predictor(const Library& library, const std::string& flag, const std::string& device) const {
    try {
      return library.predictor(device, tier_from_name(tier_).value());
    } catch (const InputError& error) {
      InputProblem problem = error.problem();
      if (problem.source == "device") problem.source = flag;  // a name that is not known
      throw InputError(std::move(problem));
    }
  }

  static void check_ranks(const std::string& flags, const ParallelPlan& plan) {
    if (rank_count(plan) <= most_job_ranks) return;
    throw InputError({.source = flags,
                      .value = fmt::format("{} ranks", rank_count(plan)),
                      .expected = fmt::format("at most {}", most_job_ranks)});
  }

  // A trace holds CUDA or HIP kernels.
  static void check_gpu(const std::string& flag, const Device& device) {
    if (device.kind == DeviceKind::gpu) return;
    throw InputError(
        {.source = flag, .value = device.name, .expected = "a GPU, because the trace contains GPU kernels"});
  }

  // The device that the trace names where it is a known one and another than the one asked for.
  static std::string other_device_in(const ProfiledStep& step, const Device& asked, const Library& library) {
    if (step.device.empty()) return "";
    try {
      return library.hardware().device(step.device).name == asked.name ? "" : step.device;
    } catch (const InputError&) {
      return "";  // what the driver calls it is in no list
    }
  }

  // Ranks beyond the TP and PP that were given are data-parallel.
  ParallelPlan plan_in(const ProfiledStep& step) const {
    ParallelPlan plan = recorded_.over({});
    plan.sequence = sequence_;
    const int64_t model_ranks = plan.tensor * plan.pipeline;
    if (recorded_.data == 0 && step.ranks > 0 && step.ranks % model_ranks == 0) plan.data = step.ranks / model_ranks;
    if (step.ranks == 0 || rank_count(plan) == step.ranks) return plan;
    throw InputError({.source = step.source,
                      .path = "distributedInfo.world_size",
                      .value = fmt::format("{} ranks", step.ranks),
                      .expected = fmt::format("-tp x -pp x -dp equal to this number, not TP{} PP{} DP{}", plan.tensor,
                                              plan.pipeline, plan.data)});
  }

  static std::shared_ptr<const RankNetwork> network_of(const Library& library, const Device& device,
                                                       const ParallelPlan& plan, const PlanFlags& flags) {
    return rank_count(plan) > 1 ? library.network(device, plan, flags.placement()) : nullptr;
  }

  std::string trace_, to_, device_;
  std::string tier_ = "best";
  PlanFlags recorded_, wanted_;
  bool sequence_ = false;
  int64_t micro_batches_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_port() {
  return std::make_unique<PortCommand>();
}

}  // namespace foretoken
