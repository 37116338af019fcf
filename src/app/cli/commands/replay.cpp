#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/machine_flags.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "network/replay/chakra_workload.h"
#include "network/replay/collective_networks.h"
#include "network/replay/replay.h"
#include "report/network/link_use_csv.h"
#include "report/network/replay_report.h"

namespace foretoken {
namespace {

class ReplayCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--chakra", prefix_, "Prefix of the trace files: PREFIX.0.et, PREFIX.1.et, ...", true);
    options.integer("--ranks", ranks_, {.least = 0, .most = 1 << 22},
                    "Number of ranks to replay, starting with rank 0; 0 = all");
    options.text(
        "--comm-group", group_file_,
        R"(Process groups by name, ranks in the order of their rings, as in ASTRA-sim: {"0": [0, 1], "1": [2, 3]})");
    options.list("--dims", dimensions_,
                 "Size of each dimension, fastest first, for traces with involved_dim, for example 8,16");
    machine_.declare_machine(options);
    options.heading("How");
    machine_.declare_fidelity(options, "--network");
    options.choice("--compute", compute_, {"recorded", "predicted"},
                   "Source of kernel times: recorded in the trace, or predicted from num_ops and tensor_size");
    options.text("--device", device_, "Device for --compute predicted and --overlap-slowdown [that of the machine]");
    options.choice("--dtype", dtype_, dtype_names(), "Number format that sets the peak rate of num_ops");
    options.flag("--overlap-slowdown", overlap_slowdown_,
                 "Slow down kernels that run beside a collective, which takes some SMs; recorded times may already "
                 "include this");
    options.heading("Output");
    options.text("--trace", trace_, "Also write a Chrome trace (.json or .json.gz) for ui.perfetto.dev");
    options.integer("--trace-ranks", trace_ranks_, {.least = 1},
                    "Number of ranks in the Chrome trace, starting with rank 0");
    options.text("--link-use", link_use_,
                 "Also write the traffic of each link over time to this CSV file (flow simulation)");
    options.footer(
        "Rank i runs on device i. docs/replay.md explains the supported node types and attributes.\nExamples:\n  "
        "foretoken step --model Llama-3.1-8B --device h100_sxm -tp 4 --batch 8 --export-chakra path/to/run\n  "
        "foretoken replay --chakra path/to/run --node hgx_h100\n  foretoken replay --chakra path/to/run --cluster "
        "h100_ib_rail --network flow --trace run.json.gz");
  }

  Answer run(const Library& library) const override {
    const CollectiveOptions network_options = machine_.collective_options();
    const CollectiveMachine machine = machine_.machine(library, network_options);
    const CollectiveModel& model = machine.model;
    const bool flows = network_options.fidelity == Fidelity::flow;
    if (!flows && !link_use_.empty())
      throw InputError({.source = "--link-use", .value = "with --network closed", .expected = "--network flow"});
    ReplayOrigin origin{.prefix = prefix_,
                        .network = fmt::format("{} on {}", flows ? "flow level" : "closed form", model.name()),
                        .compute = "recorded"};
    const ReplayWorkload workload = read_chakra_workload(prefix_, workload_options(library, machine, origin));
    if (static_cast<int64_t>(workload.ranks.size()) > model.device_count()) {
      throw InputError({.source = model.name(),
                        .value = counted(model.device_count(), "device"),
                        .expected = fmt::format("at least {} devices, one per rank", workload.ranks.size())});
    }
    ReplayOptions replay_options;
    if (overlap_slowdown_)
      replay_options.busy_share = nccl_busy_share(device_of(library, machine, "--overlap-slowdown"));
    const std::unique_ptr<ReplayNetwork> network =
        flows ? flow_network(model, {.routing = network_options.routing, .record_link_use = !link_use_.empty()})
              : estimated_network(model);
    const ReplayResult result = replay(workload, *network, replay_options);
    Answer answer{.text = replay_text(workload, result, origin), .json = replay_json(workload, result, origin)};
    if (!trace_.empty()) {
      write_file(trace_, replay_trace(workload, result, static_cast<size_t>(trace_ranks_)));
      answer.text += fmt::format("\nwrote {}: open it at ui.perfetto.dev or chrome://tracing\n", trace_);
    }
    if (!link_use_.empty()) {
      write_file(link_use_, link_use_csv(model.topology(), network->link_use()));
      answer.text += fmt::format("\nwrote {}\n", link_use_);
    }
    return answer;
  }

 private:
  ChakraReplayOptions workload_options(const Library& library, const CollectiveMachine& machine,
                                       ReplayOrigin& origin) const {
    ChakraReplayOptions options{.ranks = ranks_};
    if (!group_file_.empty()) options.group_file = group_file_;
    for (const std::string& size : dimensions_) {
      options.dimensions.push_back(parse_size("--dims", size, {.least = 1, .most = 1 << 22}));
    }
    if (compute_ != "predicted") return options;
    const Device device = device_of(library, machine, "--compute predicted");
    options.roofline = compute_roofline(device, dtype_from_name(dtype_).value());
    origin.compute = fmt::format("predicted on {} ({})", device.name, dtype_);
    return options;
  }

  Device device_of(const Library& library, const CollectiveMachine& machine, const std::string& wanted_by) const {
    if (!device_.empty()) return library.hardware().device(device_);
    if (machine.device) return *machine.device;
    throw InputError({.source = wanted_by,
                      .value = "no device",
                      .expected = "--device, because a topology does not name its devices"});
  }

  MachineFlags machine_;
  std::string prefix_, group_file_, device_, trace_, link_use_;
  std::vector<std::string> dimensions_;
  std::string compute_ = "recorded", dtype_ = "bf16";
  bool overlap_slowdown_ = false;
  int64_t ranks_ = 0;
  int64_t trace_ranks_ = 64;
};

}  // namespace

std::unique_ptr<Command> make_replay() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace foretoken
