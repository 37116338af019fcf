#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "network/collective.h"
#include "network/replay/chakra_workload.h"
#include "network/replay/replay.h"
#include "report/replay_report.h"

namespace foretoken {
namespace {

class ReplayCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--chakra", prefix_, "Start of the names of the traces: PREFIX.0.et, PREFIX.1.et, ...", true);
    options.integer("--ranks", ranks_, {.least = 0, .most = 1 << 22}, "Replay the first so many; 0: all there are");
    options.text("--comm-group", group_file_,
                 "Process groups by name, as in ASTRA-sim: {\"0\": [0, 1], \"1\": [2, 3]}");
    options.list("--dims", dimensions_, "Size of each dimension, fastest first, for traces with involved_dim: 8,16");
    options.heading("Network");
    options.text("--cluster", cluster_, "Cluster (see foretoken devices) or cluster file; rank i is device i", true);
    options.heading("Compute");
    options.choice("--compute", compute_, {"recorded", "predicted"},
                   "Times of kernels: as the trace has them, or from num_ops and tensor_size on the device");
    options.text("--device", device_, "Device of --compute predicted; default: that of the cluster");
    options.choice("--dtype", dtype_, dtype_names(), "Whose peak num_ops run at");
    options.heading("Output");
    options.text("--trace", trace_, "Also write a Chrome trace (.json, .json.gz), for ui.perfetto.dev");
    options.integer("--trace-ranks", trace_ranks_, {.least = 1}, "Ranks in that trace, from 0 on");
    options.footer(
        "Examples:\n"
        "  foretoken replay --chakra path/to/run --cluster h100_ib_rail\n"
        "  foretoken replay --chakra path/to/run --cluster h100_ib_rail --compute predicted --trace run.json.gz");
  }

  Answer run(const Library& library) const override {
    const Cluster cluster = library.hardware().cluster(cluster_);
    ReplayOrigin origin{.prefix = prefix_, .network = "closed form on " + cluster.name, .compute = "recorded"};
    ChakraReplayOptions options{.ranks = ranks_};
    if (!group_file_.empty()) options.group_file = group_file_;
    for (const std::string& size : dimensions_) options.dimensions.push_back(parse_size("--dims", size, {.least = 1}));
    if (compute_ == "predicted") {
      const Device device = device_.empty() ? cluster.node.device : library.hardware().device(device_);
      options.roofline = compute_roofline(device, dtype_from_name(dtype_).value());
      origin.compute = fmt::format("predicted on {} ({})", device.name, dtype_);
    }
    const ReplayWorkload workload = read_chakra_workload(prefix_, options);
    if (static_cast<int64_t>(workload.ranks.size()) > total_devices(cluster)) {
      throw InputError({.source = "--cluster",
                        .value = fmt::format("{} has {} devices", cluster.name, total_devices(cluster)),
                        .expected = fmt::format("at least {}, one for each rank", workload.ranks.size())});
    }
    const std::unique_ptr<ReplayNetwork> network = undisturbed_network([&](const NetworkCall& call) {
      const CollectiveShape shape{
          .kind = call.kind, .ranks = static_cast<int64_t>(call.ranks.size()), .bytes = call.bytes};
      return Seconds(collective_seconds(shape, fabric_of(cluster.node.device)).value);
    });
    const ReplayResult result = replay(workload, *network);
    Answer answer{.text = replay_text(workload, result, origin), .json = replay_json(workload, result, origin)};
    if (!trace_.empty()) {
      write_file(trace_, replay_trace(workload, result, static_cast<size_t>(trace_ranks_)));
      answer.text += fmt::format("\nwrote {}: open it at ui.perfetto.dev or chrome://tracing\n", trace_);
    }
    return answer;
  }

 private:
  std::string prefix_, group_file_, cluster_, device_, trace_;
  std::vector<std::string> dimensions_;
  std::string compute_ = "recorded", dtype_ = "bf16";
  int64_t ranks_ = 0;
  int64_t trace_ranks_ = 64;
};

}  // namespace

std::unique_ptr<Command> make_replay() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace foretoken
