#include <fstream>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/tier_flag.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/validate_steps.h"
#include "kernel/port_map.h"
#include "kernel/validate.h"
#include "network/astra_compatible/validate_astra.h"
#include "network/calibration/validate_communication.h"
#include "report/communication_report.h"
#include "report/port_map_report.h"
#include "report/validation_report.h"
#include "serving/validate_run.h"
#include "serving/validate_serving.h"

namespace foretoken {
namespace {

class ValidateCommand : public Command {
 public:
  void declare(Options& options) override {
    Options& kernels = options.subcommand("kernels", "Single kernels: a folder of <device>/<family>.csv[.gz]");
    kernels.text("--data", data_, "Folder of measurements, one device folder, or one file", true);
    kernels.list("--devices", request_.devices, "Only these devices (comma-separated)");
    kernels.list("--families", request_.families, "Only these kernel families");
    kernels.list("--where", request_.where, "Only rows with COLUMN=VALUE, as split=test");
    kernels.text("--group-by", request_.group_by, "A column to group by, instead of device/family");
    kernels.choice("--tier", tier_, tier_names(), tier_help);
    kernels.text("--calibration", calibration_, "Folder written by `foretoken fit kernels`; default: the shipped one");
    kernels.text("--campaign", campaign_,
                 "What the host adds on one machine: a file that `foretoken fit campaign` wrote");
    kernels.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    kernels.text("--port-map", port_map_,
                 "Also say how efficient each family is on each device, and draw that against its spread: an SVG file");
    kernels.integer("--threads", threads_, {.least = 0, .most = 1024}, "Files read at the same time; 0 = one per core");
    kernels.footer(
        "Columns of a file: the family's parameters (foretoken kernel FAMILY --help) and latency_us.\n"
        "Also tables of operators on several devices, by their columns: those of NeuSight (device,op,batch,m,n,k;\n"
        "device,op,rows,cols; convolutions; traced nodes) and LLMCompass (device,op,m,n,k,latency_ms).\n"
        "Layer tables of LLMServingSim (<gpu>/<model>_bf16/tp<N>_<table>.csv) are read as they are.\n"
        "Predictions never see the measured column. Rows that cannot be expressed are skipped with the reason.\n"
        "Example:\n  foretoken validate kernels --data measurements/ --devices h100_sxm --families gemm --out "
        "rows.csv");

    Options& steps = options.subcommand("steps", "Whole model steps: one CSV file");
    steps.text("--data", data_, "CSV file of measured steps, as tools/measure_steps.py writes it", true);
    steps.list("--devices", steps_.devices, "Only these devices (comma-separated)");
    steps.list("--stacks", steps_.stacks, "Only these stacks");
    steps.list("--phases", steps_.phases, "Only these phases");
    steps.list("--models", steps_.models, "Only these models");
    steps.text("--group-by", steps_.group_by, "A column to group by, instead of stack/phase");
    steps.choice("--tier", tier_, tier_names(), tier_help);
    steps.number("--host-factor", steps_.host_factor, {.least = 0.01, .most = 100},
                 "Times the stacks' host times: 2 = a host half as fast");
    steps.text("--campaign", campaign_,
               "For a layer measured by operator: what the host adds on its machine, a file that `foretoken fit "
               "campaign` wrote");
    steps.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    steps.footer(
        "Columns: device, model, stack, dispatch, phase, batch, input_len, context_len, dtype, measured_ms; optional\n"
        "kernel_ms (the kernels' sum: never used, but its error is reported), cache, optimizer, logits, tp.\n"
        "Also NeuSight's table of whole models (device,model,mode,seq_len,batch,fusion,measured_ms), and one layer\n"
        "measured operator by operator (device,phase,op,latency_ms; optional model, batch, input_len, context_len, "
        "tp),\n"
        "by default GPT-3's on four GPUs as LLMCompass measured it (data/layers/llmcompass.json).\n"
        "Example:\n  foretoken validate steps --data data/measured/h200_sxm/steps.csv --stacks torch-graph");
    steps_command_ = &steps;

    Options& collectives =
        options.subcommand("collectives", "Collectives: a table of measurements, or a folder of them");
    collectives.text("--data", data_, "CSV file or folder of such", true);
    collectives.list("--systems", collectives_.systems, "Only these systems (comma-separated)");
    collectives.list("--collectives", collectives_.collectives, "Only these collectives: all_reduce, vllm_graph, ...");
    collectives.choice("--group-by", collectives_.group_by, communication_groupings(),
                       "What to group by, instead of system/collective");
    collectives.choice("--tier", tier_, tier_names(),
                       "measured: the system's own sweep; sibling: one of its generation; cross: the sheet alone");
    collectives.flag("--give-small-message", collectives_.gives_small_message,
                     "Let the predictions know one small all-reduce of each system, which is then not scored");
    collectives.text("--calibration", calibration_,
                     "Folder written by `foretoken fit collectives`; default: the shipped");
    collectives.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    collectives.footer(
        "Tables, told by their columns:\n"
        "  system,ccl,version,collective,dtype,gpus,bytes,latency_us            NCCL, oneCCL\n"
        "  system,framework,version,kernel,dtype,gpus,bytes,latency_us          custom all-reduce\n"
        "  system,version,node_num,num_token,dispatch_avg_t_us,...              DeepEP, low latency\n"
        "  system,version,node_num,num_token,dispatch_sms,...                   DeepEP, normal\n"
        "  system,op_name,kernel_source,moe_dtype,moe_ep_size,latency_us,...    TensorRT-LLM's MoE all-to-all\n"
        "  system,collective,gpus,gpus_per_node_used,bytes,median_us            Vidur's collectives\n"
        "  topology,dims,bandwidth,latency,collective,algorithm,bytes,cycles,... ASTRA-sim's own answers\n"
        "Example:\n  foretoken validate collectives --data measurements/nccl.csv --systems h100_sxm");
    collectives_command_ = &collectives;

    Options& serving = options.subcommand("serving", "Operating points of serving engines: one CSV file");
    serving.text("--data", data_, "CSV file of measured operating points (.csv, .csv.gz)");
    serving.text("--run", run_.run_folder, "Or one run, request by request: a folder with meta.json and requests.csv");
    serving.text("--op-tables", run_.op_tables, "--run: step times from operators measured in the engine");
    serving.text("--device", run_.device, "--run: the device, where meta.json does not name one we know");
    serving.flag("--own-blocks", run_.own_blocks, "--run: KV blocks from first principles");
    serving.list("--tiers", serving_.tiers, "Only these tiers (comma-separated)");
    serving.list("--devices", serving_.devices, "Only these GPUs, as the file calls them");
    serving.list("--models", serving_.models, "Only these models");
    serving.list("--engines", serving_.engines, "Only these engines");
    serving.list("--kinds", serving_.kinds, "Only these kinds of models: dense, moe");
    serving.text("--group-by", serving_.group_by, "A column to group by, instead of tier");
    serving.choice("--tier", tier_, tier_names(), tier_help);
    serving.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Groups simulated at the same time; 0 = one per core");
    serving.text("--out", out_, "Write every value with predicted, low, high and error to this CSV file");
    serving.footer(
        "Each row is simulated from its model, GPU, engine, number formats, parallel layout, lengths and load; the\n"
        "measured values are never used. Rows that cannot be expressed are skipped with the reason.\n"
        "Examples:\n  foretoken validate serving --data cases.csv --kinds dense\n"
        "  foretoken validate serving --run vllm_runs/RTX4090_Llama-3.1-8B --op-tables "
        "vllm_runs/RTX4090_Llama-3.1-8B/op_profile");
    serving_command_ = &serving;
  }

  Answer run(const Library& library) const override {
    if (steps_command_->was_chosen()) return run_steps(library);
    if (collectives_command_->was_chosen()) return run_collectives(library);
    if (serving_command_->was_chosen()) return run_serving(library);
    return run_kernels(library);
  }

 private:
  std::ofstream open_out() const {
    std::ofstream rows;
    if (out_.empty()) return rows;
    rows.open(out_, std::ios::binary | std::ios::trunc);
    if (!rows) {
      throw InputError(
          {.source = "--out", .value = out_, .expected = "a file that can be written, in an existing folder"});
    }
    return rows;
  }
  void close_out(std::ofstream& rows) const {
    if (out_.empty()) return;
    rows.close();
    if (!rows) throw InputError({.source = "--out", .value = out_, .expected = "room to write all rows"});
  }

  Answer run_steps(const Library& library) const {
    StepValidationRequest request = steps_;
    request.data = data_;
    request.layer = library.layer_conventions();
    if (!campaign_.empty()) request.campaign = read_campaign(campaign_);
    std::ofstream rows = open_out();
    ScoredStepSink sink;
    if (!out_.empty()) {
      rows << scored_step_header();
      sink = [&](const ScoredStep& scored) { rows << scored_step_row(scored); };
    }
    const Tier tier = tier_from_name(tier_).value();
    const StepValidation validation = validate_steps(
        request, library.hardware(), library.models(), library.stacks(),
        [&](const Device& device) { return library.predictor(device.name, tier); },
        [&](const Device& device) { return library.power_model(device); }, sink);
    close_out(rows);
    return {.text = step_validation_text(validation), .json = step_validation_json(validation)};
  }

  // A table of ASTRA-sim's answers is met by its own arithmetic, not by predictions.
  Answer run_astra() const {
    std::ofstream rows = open_out();
    ScoredAstraSink sink;
    if (!out_.empty()) {
      rows << scored_astra_header();
      sink = [&](const ScoredAstraRun& scored) { rows << scored_astra_row(scored); };
    }
    const Validation validation = validate_astra(data_, sink);
    close_out(rows);
    return {.text = validation_text(validation), .json = validation_json(validation, "collectives")};
  }

  Answer run_collectives(const Library& library) const {
    if (is_astra_table(data_)) return run_astra();
    CommunicationValidationRequest request = collectives_;
    request.data = data_;
    request.tier = tier_from_name(tier_).value();
    const HardwareCatalogue hardware = library.hardware();
    const SystemLibrary systems(hardware);
    const auto calibrations = std::make_shared<const CommunicationLibrary>(
        read_communication_library(calibration_.empty() ? library.networks() : std::filesystem::path(calibration_)));
    std::ofstream rows = open_out();
    ScoredCommunicationSink sink;
    if (!out_.empty()) {
      rows << scored_communication_header();
      sink = [&](const ScoredCommunication& scored) { rows << scored_communication_row(scored); };
    }
    const Validation validation = validate_communication(request, calibrations, systems, sink);
    close_out(rows);
    return {.text = validation_text(validation), .json = validation_json(validation, "collectives")};
  }

  Validation replay_run(const Library& library, const DeviceModelMaker& make_models,
                        const ScoredServingSink& sink) const {
    return validate_run({.folder = run_.run_folder,
                         .op_tables = run_.op_tables,
                         .device = run_.device,
                         .own_blocks = run_.own_blocks},
                        library.hardware(), library.models(), library.stacks(), make_models, sink)
        .errors;
  }

  Answer run_serving(const Library& library) const {
    const Tier tier = tier_from_name(tier_).value();
    const DeviceModelMaker make_models = [&](const Device& device, const ParallelPlan& plan) {
      return library.device_models(device.name, plan, tier);
    };
    if (data_.empty() == run_.run_folder.empty()) {
      throw InputError({.source = "--data",
                        .value = data_.empty() ? "not given" : "and --run",
                        .expected = "--data FILE or --run FOLDER, one of them"});
    }
    ServingValidationRequest request = serving_;
    request.data = data_;
    request.threads = static_cast<int>(threads_);
    std::ofstream rows = open_out();
    ScoredServingSink sink;
    if (!out_.empty()) {
      rows << scored_serving_header();
      sink = [&](const ScoredServing& scored) { rows << scored_serving_row(scored); };
    }
    const Validation validation = data_.empty() ? replay_run(library, make_models, sink)
                                                : validate_serving(request, library.hardware(), library.models(),
                                                                   library.stacks(), make_models, sink);
    close_out(rows);
    return {.text = validation_text(validation), .json = validation_json(validation, "serving")};
  }

  Answer run_kernels(const Library& library) const {
    KernelValidationRequest request = request_;
    request.data = data_;
    request.threads = static_cast<int>(threads_);
    if (!campaign_.empty()) request.campaign = read_campaign(campaign_);
    const ModelCatalogue models = library.models();
    request.models = &models;
    std::ofstream rows = open_out();
    ScoredKernelSink sink;
    if (!out_.empty()) {
      rows << scored_kernel_header();
    }
    PortMap port_map;
    if (!out_.empty() || !port_map_.empty()) {
      sink = [&](const ScoredKernel& scored) {
        if (!out_.empty()) rows << scored_kernel_row(scored);
        if (!port_map_.empty()) port_map.add(scored);
      };
    }
    const Tier tier = tier_from_name(tier_).value();
    const std::filesystem::path calibrations =
        calibration_.empty() ? library.calibrations() : std::filesystem::path(calibration_);
    if (!std::filesystem::is_directory(calibrations)) {
      throw InputError({.source = "--calibration",
                        .value = printable(calibrations.string()),
                        .expected = "a folder that `foretoken fit kernels` wrote"});
    }
    const Validation validation = validate_kernels(
        request, library.hardware(),
        [&](const Device& device, Caches caches) {
          return library.benchmark_predictor(device, tier, calibrations, caches);
        },
        sink);
    close_out(rows);
    Answer answer{.text = validation_text(validation), .json = validation_json(validation, "kernels")};
    if (!port_map_.empty()) {
      const std::vector<FamilyPortability> families = port_map.families();
      write_file(port_map_, port_map_svg(families));
      answer.text += "\n" + port_map_text(families) + fmt::format("wrote {}\n", port_map_);
      answer.json.set("port_map", port_map_json(families));
    }
    return answer;
  }

  std::string data_, out_, calibration_, port_map_, campaign_;
  std::string tier_ = "best";
  int64_t threads_ = 0;
  KernelValidationRequest request_;
  StepValidationRequest steps_;
  CommunicationValidationRequest collectives_;
  const Options* collectives_command_ = nullptr;
  ServingValidationRequest serving_;
  struct {
    std::string run_folder, op_tables, device;
    bool own_blocks = false;
  } run_;
  const Options* steps_command_ = nullptr;
  const Options* serving_command_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace foretoken
