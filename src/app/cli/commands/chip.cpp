#include <fmt/format.h>

#include "accelerator/row_stationary/published_layers.h"
#include "accelerator/workload/conv_layers.h"
#include "app/cli/commands/list.h"
#include "app/cli/flags/layer_flags.h"
#include "app/cli/grammar/shipped_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/chip/chip_report.h"
#include "report/parts/json_rows_csv.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

class ChipCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.heading("Chip");
    options.text("--chip", chip_, "Row-stationary chip: eyeriss_v1, or a chip JSON file");
    options.text("--zeros", zeros_,
                 "Share of zeros in the inputs of layers, from 0 to 1; published = as measured on the chip for alexnet "
                 "and vgg16, none for others");
    options.list(
        "--nvdla", nvdla_,
        "NVDLA, instead of --chip: number of multipliers, convolution buffer in KiB and DRAM bandwidth in GB/s");
    options.number("--clock-mhz", clock_mhz_, {.least = 1, .most = 1e5}, "Clock of NVDLA in MHz");
    options.heading("Work");
    layers_.declare(options);
    layers_.declare_batch(options);
    options.heading("Output");
    options.text("--csv", csv_, "Write one row per layer to this CSV file");
    options.footer(
        "Examples:\n  foretoken chip --chip eyeriss_v1 --network alexnet --batch 4\n  foretoken chip --chip eyeriss_v1 "
        "--network vgg16 --batch 3\n  foretoken chip --chip eyeriss_v1 --conv 64x64x56x56x3 --zeros 0.5\n  foretoken "
        "chip --nvdla 2048,512,20 --network resnet50\n  foretoken chip --nvdla 64,128,1 --conv 64x64x56x56x3\nBelow "
        "the table, each layer is shown with its mapping on the array and its bottleneck. A matrix product runs as "
        "a\n1x1 convolution. Zeros are compressed on the link to DRAM and save energy; the input image of a network is "
        "not\ncompressed.");
  }

  Answer run(const Library& library) const override {
    if (chip_.empty() == nvdla_.empty()) {
      throw InputError({.source = "--chip, --nvdla",
                        .value = chip_.empty() ? "none of them" : "both",
                        .expected = "exactly one: --chip eyeriss_v1 or --nvdla 2048,512,20"});
    }
    const std::vector<NetworkLayer> layers = layers_.layers(library);
    Answer answer = nvdla_.empty() ? row_stationary(library, layers) : on_nvdla(layers);
    if (!csv_.empty()) {
      write_file(csv_, json_rows_csv(*answer.json.find("layers")));
      answer.text += fmt::format("wrote {}\n", csv_);
    }
    return answer;
  }

 private:
  Answer row_stationary(const Library& library, const std::vector<NetworkLayer>& layers) const {
    options_->refuse({"--clock-mhz"}, {}, "--chip, whose file gives the clock");
    RowStationaryReport report{.chip = read_row_stationary_chip(shipped_file(
                                   "--chip", library.directory() / "accelerators" / "chips", chip_, "a chip file"))};
    std::vector<ConvLayer> convolutions;
    for (const NetworkLayer& layer : layers) convolutions.push_back(conv_layer(layer));
    const std::string note = set_zeros(library, convolutions);
    for (size_t i = 0; i < layers.size(); ++i) {
      report.rows.push_back(one_layer(report.chip, convolutions[i], layers[i].count));
    }
    refuse_when_nothing_runs(report);
    Answer answer{.text = row_stationary_text(report), .json = row_stationary_json(report)};
    if (!note.empty()) answer.text += wrap_lines("note: " + note + "\n", page_width(), 2);
    answer.json.set("note", note.empty() ? Json() : Json(note));
    return answer;
  }

  static RowStationaryReport::Row one_layer(const RowStationaryChip& chip, const ConvLayer& layer, int64_t count) {
    RowStationaryReport::Row row{.layer = layer, .count = count};
    try {
      row.result = estimate_row_stationary(chip, layer);
    } catch (const InputError& error) {
      row.why_not =
          fmt::format("{} {}: expected {}", error.problem().path, error.problem().value, error.problem().expected);
    }
    return row;
  }

  static void refuse_when_nothing_runs(const RowStationaryReport& report) {
    for (const RowStationaryReport::Row& row : report.rows) {
      if (row.result) return;
    }
    throw InputError({.source = report.chip.name,
                      .value = report.rows.front().why_not,
                      .expected = "a layer that fits the array and its scratch pads"});
  }

  // Returns what a reader should know about the zeros.
  std::string set_zeros(const Library& library, std::vector<ConvLayer>& layers) const {
    const bool is_network = !layers_.network.empty();
    std::string note;
    if (zeros_ == "published") {
      note = set_published_zeros(library, layers);
    } else {
      const double share =
          parse_listed_number("--zeros", zeros_, {.least = 0, .most = 1}, "a share from 0 to 1, or published");
      for (ConvLayer& layer : layers) layer.ifmap_zero_share = share;
      if (is_network) layers.front().ifmap_zero_share = 0;  // an image
    }
    chain_zero_shares(layers);
    if (!is_network) layers.front().ifmap_compressed = true;
    return note;
  }

  std::string set_published_zeros(const Library& library, std::vector<ConvLayer>& layers) const {
    const PublishedConvLayers published =
        read_published_conv_layers(library.directory() / "accelerators" / "published" / "eyeriss_jssc2017.json");
    const std::string network = std::filesystem::path(layers_.network).stem().string();
    std::vector<std::string> unknown;
    double last = 0;
    for (ConvLayer& layer : layers) {
      const std::optional<double> share = published.zero_share(network, layer.name);
      if (!share) unknown.push_back(layer.name);
      last = share.value_or(last);
      layer.ifmap_zero_share = last;
    }
    if (unknown.empty()) return "";
    if (unknown.size() == layers.size())
      return "no zeros are published for this work, so none are assumed (set them with --zeros 0.5)";
    return fmt::format("no zeros are published for {}, so those of the layer before are assumed",
                       fmt::join(unknown, ", "));
  }

  Answer on_nvdla(const std::vector<NetworkLayer>& layers) const {
    options_->refuse({"--zeros"}, {}, "--nvdla");
    NvdlaReport report{.configuration = nvdla_configuration()};
    for (const NetworkLayer& layer : layers) {
      const NvdlaLayer own{.convolution = conv_layer(layer), .repeats = layer.count};
      report.rows.push_back({.layer = own, .time = nvdla_layer_time(report.configuration, own)});
    }
    return {.text = nvdla_text(report), .json = nvdla_json(report)};
  }

  NvdlaConfiguration nvdla_configuration() const {
    const std::string expected = "multipliers, buffer in KiB and DRAM in GB/s, for example 2048,512,20";
    if (nvdla_.size() != 3) {
      throw InputError({.source = "--nvdla", .value = fmt::format("{}", fmt::join(nvdla_, ",")), .expected = expected});
    }
    const auto number = [&](size_t place, double least) {
      return parse_listed_number("--nvdla", nvdla_[place], {.least = least, .most = 1e6}, expected);
    };
    const std::optional<int64_t> macs = parse_integer(nvdla_[0]);
    if (!macs || *macs < 1 || *macs > 1 << 24) {
      throw InputError({.source = "--nvdla", .value = printable(nvdla_[0]), .expected = expected});
    }
    return {.macs = *macs,
            .convolution_buffer = Bytes(number(1, 1) * kibi),
            .dram = BytesPerSecond(number(2, 1e-3) * giga),
            .clock = Hertz(clock_mhz_ * mega)};
  }

  const Options* options_ = nullptr;
  LayerFlags layers_;
  std::string chip_, zeros_ = "published", csv_;
  std::vector<std::string> nvdla_;
  double clock_mhz_ = 1000;
};

}  // namespace

std::unique_ptr<Command> make_chip() {
  return std::make_unique<ChipCommand>();
}

}  // namespace foretoken
