#include <fmt/format.h>

#include "accelerator/systolic/scalesim_files.h"
#include "app/cli/commands/list.h"
#include "app/cli/flags/layer_flags.h"
#include "app/cli/grammar/shipped_file.h"
#include "app/cli/grammar/whole_numbers.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "report/chip/systolic_report.h"
#include "report/parts/json_rows_csv.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> array_sides{.least = 1, .most = 65536};

class SystolicCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.heading("Array");
    options.text("--array", array_, "Rows and columns of the array");
    options.choice(
        "--dataflow", dataflow_, {"os", "ws", "is", "best"},
        "What stays in the array: os = outputs, ws = weights, is = inputs; best = the fastest for each layer");
    options.list("--sram-kb", sram_, "KiB of SRAM for inputs, weights and outputs, as one number or three [64 each]");
    options.integer("--word-bytes", word_bytes_, {.least = 1, .most = 16}, "Bytes of a word in SRAM");
    options.list("--dram-bandwidth", dram_,
                 "Words per cycle between DRAM and the SRAMs, as one number or three [unlimited: reads never wait]");
    options.text("--config", config_, "SCALE-Sim configuration file (.cfg), instead of the flags above");
    options.text("--cores", cores_, "Split each layer over equal arrays: a number (16) or a grid (4x4)");
    options.heading("Chip");
    options.text("--chip", chip_, "Chip instead of an array: tpu_v1, tpu_v3, tpu_v4 or a chip JSON file");
    options.heading("Work");
    layers_.declare(options);
    layers_.declare_batch(options);
    options.text("--topology", topology_, "SCALE-Sim topology file (.csv), instead of the flags above");
    options.heading("Output");
    options.text("--csv", csv_, "Write one row per layer to this CSV file");
    options.footer(
        "Examples:\n  foretoken systolic --array 32x32 --dataflow best --gemm 512x4096x1024\n  foretoken systolic "
        "--array 128x128 --dataflow ws --network resnet50\n  foretoken systolic --array 16x16 --conv 64x64x56x56x3 "
        "--sram-kb 16,16,16 --dram-bandwidth 8\n  foretoken systolic --array 32x32 --gemm 512x4096x1024 --cores 4x4\n  "
        "foretoken systolic --chip tpu_v3 --network resnet50 --batch 8\n  foretoken systolic --config "
        "path/to/scale.cfg --topology path/to/alexnet.csv --csv layers.csv\nCycles, stalls and words are those that "
        "SCALE-Sim v3 would report. Groups, images and products of a batch run\none after the other (column times). A "
        "chip adds its memory and the operators that are not matrix products.");
  }

  Answer run(const Library& library) const override {
    if (!chip_.empty()) return on_chip(library);
    const SystolicArray array = described_array();
    const std::vector<RepeatedSystolicLayer> work = work_of(library);
    Answer answer = cores_.empty() ? on_array(array, work) : on_cores(array, work);
    return with_csv(std::move(answer));
  }

 private:
  // One number for all three operands, or one for each.
  static std::array<int64_t, 3> per_operand(const std::string& flag, const std::vector<std::string>& given,
                                            Range<int64_t> allowed, const std::string& expected) {
    const std::string text = fmt::format("{}", fmt::join(given, ","));
    const std::vector<int64_t> numbers = whole_numbers(flag, text, ",", allowed, expected);
    if (numbers.size() == 1) return {numbers[0], numbers[0], numbers[0]};
    if (numbers.size() != 3) throw InputError({.source = flag, .value = printable(text), .expected = expected});
    return {numbers[0], numbers[1], numbers[2]};
  }

  SystolicArray described_array() const {
    if (!config_.empty()) {
      options_->refuse({"--array", "--sram-kb", "--dram-bandwidth", "--word-bytes"}, {}, "--config");
      return read_scalesim_config(config_).array;
    }
    const std::vector<int64_t> sides = whole_numbers("--array", array_, "x", array_sides,
                                                     "rows x columns of the array, up to 65536, for example 32x32");
    if (sides.size() != 2) {
      throw InputError(
          {.source = "--array", .value = printable(array_), .expected = "rows x columns, for example 32x32"});
    }
    SystolicArray array{.rows = sides[0], .columns = sides[1], .word_bytes = word_bytes_};
    if (!sram_.empty()) {
      const auto kib = per_operand("--sram-kb", sram_, {.least = 1, .most = 1 << 20},
                                   "KiB for inputs, weights and outputs, up to 1048576, for example 64,64,64");
      array.input_sram_bytes = 1024 * kib[0];
      array.weight_sram_bytes = 1024 * kib[1];
      array.output_sram_bytes = 1024 * kib[2];
    }
    if (!dram_.empty()) {
      const auto words = per_operand(
          "--dram-bandwidth", dram_, {.least = 1, .most = 1 << 20},
          "one or three numbers of words per cycle (inputs, weights, outputs) from 1 to 1048576, for example 8 or "
          "10,10,10");
      array.dram = DramWordsPerCycle{.inputs = words[0], .weights = words[1], .outputs = words[2]};
    }
    return array;
  }

  std::vector<RepeatedSystolicLayer> work_of(const Library& library) const {
    std::vector<RepeatedSystolicLayer> work;
    if (topology_.empty()) {
      for (const NetworkLayer& layer : layers_.layers(library)) work.push_back(systolic_layer(layer));
      return work;
    }
    options_->refuse({"--gemm", "--conv", "--network", "--batch"}, {}, "--topology");
    for (const NamedSystolicLayer& layer : read_scalesim_topology(topology_)) {
      work.push_back({.name = layer.name, .layer = layer.layer});
    }
    return work;
  }

  std::vector<Dataflow> tried(const SystolicArray& array) const {
    if (dataflow_ == "best") return {dataflows.begin(), dataflows.end()};
    const bool as_configured = !config_.empty() && !options_->was_given("--dataflow");
    return {as_configured ? array.dataflow : find_dataflow(dataflow_).value()};
  }

  Answer on_array(const SystolicArray& array, const std::vector<RepeatedSystolicLayer>& work) const {
    SystolicReport report{.array = array};
    for (const RepeatedSystolicLayer& layer : work) {
      show_progress(fmt::format("layer {} of {}: {}", report.rows.size() + 1, work.size(), layer.name));
      report.rows.push_back({.layer = layer, .run = run_systolic_layer(array, layer.layer, tried(array))});
    }
    return {.text = systolic_text(report), .json = systolic_json(report)};
  }

  Answer on_cores(const SystolicArray& array, const std::vector<RepeatedSystolicLayer>& work) const {
    options_->refuse({"--sram-kb", "--word-bytes", "--dram-bandwidth"}, {}, "--cores, which counts cycles only");
    const std::string expected = "a number of cores, up to 65536, or a grid, for example 4x4";
    const std::vector<int64_t> sides = whole_numbers("--cores", cores_, "x", array_sides, expected);
    if (sides.size() > 2) throw InputError({.source = "--cores", .value = printable(cores_), .expected = expected});
    CoreGrid grid{.cores = sides[0]};
    if (sides.size() == 2) grid = {.cores = sides[0] * sides[1], .rows = sides[0]};
    CoresReport report{.core = array, .cores = grid.cores};
    for (const RepeatedSystolicLayer& layer : work) {
      report.rows.push_back({.layer = layer, .run = run_on_cores(array, layer.layer, tried(array), grid)});
    }
    return {.text = cores_text(report), .json = cores_json(report)};
  }

  Answer on_chip(const Library& library) const {
    options_->refuse({"--topology"}, {"Array"}, "--chip");
    const SystolicChip chip = read_systolic_chip(
        shipped_file("--chip", library.directory() / "accelerators" / "systolic", chip_, "a chip file"));
    const ChipNetworkRun run = run_chip_network(chip, layers_.layers(library));
    return with_csv({.text = systolic_chip_text(chip, run), .json = systolic_chip_json(chip, run)});
  }

  Answer with_csv(Answer answer) const {
    if (csv_.empty()) return answer;
    write_file(csv_, json_rows_csv(*answer.json.find("layers")));
    answer.text += fmt::format("wrote {}\n", csv_);
    return answer;
  }

  const Options* options_ = nullptr;
  LayerFlags layers_;
  std::string array_ = "32x32", dataflow_ = "os", config_, cores_, chip_, topology_, csv_;
  std::vector<std::string> sram_, dram_;
  int64_t word_bytes_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_systolic() {
  return std::make_unique<SystolicCommand>();
}

}  // namespace foretoken
