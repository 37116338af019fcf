#include <algorithm>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "network/astra_compatible/validate_astra.h"
#include "report/accuracy/validation_report.h"
#include "report/network/communication_report.h"
#include "validate/collectives/validate_communication.h"

namespace foretoken {
namespace {

class ValidateCollectives : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file, or a folder of CSV files", true);
    options.list("--systems", request_.systems, "Only these systems (comma-separated)");
    options.list("--collectives", request_.collectives, "Only these collectives: all_reduce, vllm_graph, ...");
    options.choice("--group-by", request_.group_by, groupings(),
                   "How to group the results; source, cluster and role are only for collectives between nodes [system "
                   "and collective; between nodes: role]");
    options.choice("--tier", tier_, tier_names(),
                   "Source of predictions: measured = the system's own sweep; sibling = a system of the same "
                   "generation; cross = the spec sheet alone");
    options.flag("--give-small-message", request_.gives_small_message,
                 "Calibrate each system with one small all-reduce, which is then not scored");
    options.text("--calibration", calibration_, "Folder written by `foretoken fit collectives` [the shipped one]");
    options.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    options.footer(
        "Tables, recognized by their columns:\n  system,ccl,version,collective,dtype,gpus,bytes,latency_us            "
        "NCCL, oneCCL\n  system,framework,version,kernel,dtype,gpus,bytes,latency_us          custom all-reduce\n  "
        "system,version,node_num,num_token,dispatch_avg_t_us,...              DeepEP, low latency\n  "
        "system,version,node_num,num_token,dispatch_sms,...                   DeepEP, normal\n  "
        "system,op_name,kernel_source,moe_dtype,moe_ep_size,latency_us,...    TensorRT-LLM's MoE all-to-all\n  "
        "system,collective,gpus,gpus_per_node_used,bytes,median_us            Vidur's collectives\n  "
        "source,cluster,nodes,gpus_per_node,collective,bytes,latency_us,role  collectives between nodes\n  "
        "topology,dims,bandwidth,latency,collective,algorithm,bytes,cycles,... ASTRA-sim's own answers\nExample:\n  "
        "foretoken validate collectives --data measurements/nccl.csv --systems h100_sxm\n  "
        "foretoken validate collectives --data data/networks/published/between_nodes.csv --group-by cluster");
  }

  Answer run(const Library& library) const override {
    if (is_astra_table(data_)) return run_astra();
    if (is_between_nodes_table(data_)) return run_between_nodes(library);
    CommunicationValidationRequest request = request_;
    request.data = data_;
    request.tier = tier_from_name(tier_).value();
    const HardwareCatalogue hardware = library.hardware();
    const SystemLibrary systems(hardware);
    const auto calibrations = std::make_shared<const CommunicationLibrary>(
        read_communication_library(calibration_.empty() ? library.networks() : std::filesystem::path(calibration_)));
    OutFile rows("--out", out_);
    ScoredCommunicationSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_communication_header();
      sink = [&](const ScoredCommunication& scored) { rows.stream() << scored_communication_row(scored); };
    }
    const Validation validation = validate_communication(request, calibrations, systems, sink);
    rows.close();
    return validation_answer(validation, "collectives");
  }

 private:
  static std::vector<std::string> groupings() {
    std::vector<std::string> names = communication_groupings();
    for (const std::string& name : between_nodes_groupings()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }

  // Those of sweeps inside a node.
  bool has_sweep_flags() const {
    return !request_.systems.empty() || tier_ != "best" || request_.gives_small_message || !calibration_.empty();
  }

  [[noreturn]] static void fail_flags(const std::string& flags, const std::string& why) {
    throw InputError(
        {.source = flags, .value = "given", .expected = "none of these flags, because this file has " + why});
  }

  Answer run_between_nodes(const Library& library) const {
    if (has_sweep_flags()) {
      fail_flags("--systems, --tier, --give-small-message, --calibration",
                 "collectives between nodes, not sweeps inside one");
    }
    OutFile rows("--out", out_);
    ScoredBetweenNodesSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_between_nodes_header();
      sink = [&](const ScoredBetweenNodes& scored) { rows.stream() << scored_between_nodes_row(scored); };
    }
    const BetweenNodesRequest request{
        .data = data_, .collectives = request_.collectives, .group_by = request_.group_by};
    const Validation validation = validate_between_nodes(request, library, sink);
    rows.close();
    return validation_answer(validation, "collectives");
  }

  // A table of ASTRA-sim's answers is met by its own arithmetic, not by predictions.
  Answer run_astra() const {
    if (has_sweep_flags() || !request_.collectives.empty() || !request_.group_by.empty()) {
      fail_flags("--systems, --collectives, --group-by, --tier, --give-small-message, --calibration",
                 "ASTRA-sim's own answers, of which every row is compared");
    }
    OutFile rows("--out", out_);
    ScoredAstraSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_astra_header();
      sink = [&](const ScoredAstraRun& scored) { rows.stream() << scored_astra_row(scored); };
    }
    const Validation validation = validate_astra(data_, sink);
    rows.close();
    return validation_answer(validation, "collectives");
  }

  std::string data_, out_, calibration_, tier_ = "best";
  CommunicationValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_collectives() {
  return std::make_unique<ValidateCollectives>();
}

}  // namespace foretoken
