#include <fmt/format.h>

#include "accelerator/dataflow/dataflow_file.h"
#include "accelerator/dataflow/dataflow_network.h"
#include "app/cli/commands/list.h"
#include "app/cli/flags/layer_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "report/chip/dataflow_report.h"
#include "report/parts/json_rows_csv.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> hardware_sizes{.least = 1, .most = unlimited_hardware};

class DataflowCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.heading("Dataflow");
    options.text("--dataflow", dataflow_,
                 "Dataflow: a built-in one (kcp_ws, nlr, rs, xp_ws, ykp_os, yxp_os), a file of directives (.m), or "
                 "best = the best one for each layer");
    options.choice("--objective", objective_, {"cycles", "energy", "edp"},
                   "Objective to minimize when best chooses the dataflow: cycles, energy or their product (edp)");
    options.text("--mapping", mapping_,
                 "MAESTRO file of layers with their dataflows (.m), instead of --dataflow and the layer flags");
    options.choice("--reading", reading_, {"physical", "maestro"},
                   "What to count: the work of hardware that follows the directives, or MAESTRO's own count");
    options.heading("Work");
    layers_.declare(options);
    layers_.declare_batch(options);
    options.heading("Hardware file");
    options.text("--hardware", hardware_file_, "MAESTRO hardware file (.m), instead of the flags below");
    options.heading(hardware_heading);
    options.integer("--pes", hardware_.num_pes, hardware_sizes, "Number of processing elements (PEs)");
    options.integer("--l1", hardware_.l1_bytes, hardware_sizes, "Bytes of L1 buffer per PE; one byte per number");
    options.integer("--l2", hardware_.l2_bytes, hardware_sizes, "Bytes of the shared L2 buffer");
    options.integer("--noc-bandwidth", hardware_.noc_bandwidth, hardware_sizes,
                    "Numbers per cycle between L2 and the PEs");
    options.integer("--noc-latency", hardware_.noc_latency_cycles, {.least = 1, .most = 1 << 20},
                    "Cycles until the first number arrives from L2");
    options.integer("--offchip-bandwidth", hardware_.offchip_bandwidth, hardware_sizes,
                    "Numbers per cycle between memory and L2");
    options.heading("Output");
    options.text("--csv", csv_, "Write one row per layer to this CSV file");
    options.footer(
        "Examples:\n  foretoken dataflow --conv 64x64x56x56x3 --pes 256 --l1 512 --l2 108000\n  foretoken dataflow "
        "--dataflow kcp_ws --network resnet50 --pes 256 --noc-bandwidth 64\n  foretoken dataflow --network "
        "mobilenet_v2 --pes 168 --l1 512 --objective energy\n  foretoken dataflow --dataflow ykp_os --gemm "
        "512x1024x1024 --offchip-bandwidth 16\n  foretoken dataflow --mapping path/to/resnet50_kcp_ws.m --hardware "
        "path/to/accelerator.m --reading maestro\nA limit of 2147483647 means no limit. Buffers that are too small are "
        "marked (!): the dataflow would not run.");
  }

  Answer run(const Library& library) const override {
    DataflowReport report{.hardware = described_hardware(),
                          .reading = reading_ == "maestro" ? DataflowReading::maestro : DataflowReading::physical};
    report.rows = mapping_.empty() ? layers_by_name(library, report) : mapped_layers(report);
    refuse_when_nothing_runs(report);
    Answer answer{.text = dataflow_text(report), .json = dataflow_json(report)};
    if (!csv_.empty()) {
      write_file(csv_, json_rows_csv(*answer.json.find("layers")));
      answer.text += fmt::format("wrote {}\n", csv_);
    }
    return answer;
  }

 private:
  static constexpr const char* hardware_heading = "Hardware";

  DataflowHardware described_hardware() const {
    if (hardware_file_.empty()) return hardware_;
    options_->refuse({}, {hardware_heading}, "--hardware");
    return read_dataflow_hardware(hardware_file_);
  }

  std::vector<DataflowReport::Row> mapped_layers(const DataflowReport& report) const {
    options_->refuse({"--dataflow", "--objective"}, {"Work"}, "--mapping");
    std::vector<DataflowReport::Row> rows;
    for (const MappedLayer& own : read_mapped_network(mapping_).layers) {
      rows.push_back({.layer = own.layer,
                      .tried = {try_directives(own.layer, "own", own.dataflow, report.hardware, report.reading)}});
    }
    return rows;
  }

  std::vector<DataflowReport::Row> layers_by_name(const Library& library, const DataflowReport& report) const {
    const std::vector<NamedDataflow> shipped =
        read_dataflow_library(library.directory() / "accelerators" / "dataflows");
    if (dataflow_ == "best") {
      options_->refuse({"--reading"}, {}, "--dataflow best, which compares what hardware would do");
    } else {
      options_->refuse({"--objective"}, {}, "one dataflow");
    }
    std::vector<DataflowReport::Row> rows;
    for (const NetworkLayer& layer : layers_.layers(library)) {
      DataflowReport::Row row{.layer = dataflow_layer(layer), .count = layer.count};
      if (dataflow_ == "best") {
        row.tried = rank_dataflows(row.layer, shipped, report.hardware, objective());
      } else {
        row.tried = {try_dataflow(row.layer, chosen(shipped), report.hardware, report.reading)};
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  NamedDataflow chosen(const std::vector<NamedDataflow>& shipped) const {
    if (dataflow_.find('/') == std::string::npos && !dataflow_.ends_with(".m")) {
      return find_dataflow(shipped, dataflow_);
    }
    const std::filesystem::path file = dataflow_;
    return {.name = file.stem().string(), .directives = read_directives(file)};
  }

  DataflowObjective objective() const {
    if (objective_ == "energy") return DataflowObjective::energy;
    return objective_ == "edp" ? DataflowObjective::energy_delay : DataflowObjective::cycles;
  }

  // Where others run, a layer that does not is a line of the answer.
  void refuse_when_nothing_runs(const DataflowReport& report) const {
    for (const DataflowReport::Row& row : report.rows) {
      if (row.taken().has_cost()) return;
    }
    const DataflowReport::Row& first = report.rows.front();
    throw InputError({.source = mapping_.empty() ? "--dataflow" : mapping_,
                      .path = fmt::format("layer {}", printable(first.layer.name)),
                      .value = first.taken().why_not,
                      .expected = report.reading == DataflowReading::physical
                                      ? "a dataflow that hardware can follow; --reading maestro counts more leniently"
                                      : "a dataflow that fits the layer and the hardware"});
  }

  const Options* options_ = nullptr;
  LayerFlags layers_;
  DataflowHardware hardware_{.num_pes = 256};
  std::string dataflow_ = "best", objective_ = "cycles", mapping_, reading_ = "physical", hardware_file_, csv_;
};

}  // namespace

std::unique_ptr<Command> make_dataflow() {
  return std::make_unique<DataflowCommand>();
}

}  // namespace foretoken
