#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/commands/validate/withheld_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/withheld_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "base/file.h"
#include "kernel/port_map.h"
#include "kernel/ported_time.h"
#include "kernel/validate.h"
#include "report/accuracy/ported_pairs_report.h"
#include "report/accuracy/validation_report.h"
#include "report/chip/port_map_report.h"

namespace foretoken {
namespace {

class ValidateKernels : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("--data", data_, "Folder of measurements, one device folder, or one file", true);
    options.list("--devices", request_.devices, "Only these devices (comma-separated)");
    options.list("--families", request_.families, "Only these kernel families");
    options.list("--where", request_.where, "Only rows with COLUMN=VALUE, for example split=test");
    options.text("--group-by", request_.group_by, "Column to group by, instead of device/family");
    declare_kernel_source(options, tier_);
    withheld_.declare(options, true);
    options.text("--campaign", campaign_,
                 "Host overhead of the measured machine: a file written by `foretoken fit campaign`");
    options.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    options.text(
        "--port-map", port_map_,
        "Also report the efficiency of each family on each device, and plot it against its spread in this SVG file");
    options.flag("--ported", ported_,
                 "Also report, for each pair of devices, how well kernel times measured on one predict those on the "
                 "other, as foretoken port does");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of files read at the same time; 0 = one per core");
    options.footer(
        "Columns of a file: the family's parameters (foretoken kernel FAMILY --help) and latency_us.\nTables of "
        "operators on several devices are recognized by their columns: NeuSight's "
        "(device,op,batch,m,n,k;\ndevice,op,rows,cols; convolutions; traced nodes) and LLMCompass's "
        "(device,op,m,n,k,latency_ms).\nLayer tables of LLMServingSim (<gpu>/<model>_bf16/tp<N>_<table>.csv) are read "
        "directly.\nPredictions never use the measured column. Rows that cannot be expressed are skipped with the "
        "reason.\nExamples:\n  foretoken validate kernels --data measurements/ --devices h100_sxm --families gemm "
        "--out rows.csv\n  foretoken validate kernels --data measurements/ --families gemm,moe --without hopper");
  }

  Answer run(const Library& library) const override {
    KernelValidationRequest request = request_;
    request.data = data_;
    request.threads = static_cast<int>(threads_);
    if (!campaign_.empty()) request.campaign = read_campaign(campaign_);
    const ModelCatalogue models = library.models();
    request.models = &models;
    if (withheld_.is_wanted()) return without_generation(library, request);
    OutFile rows("--out", out_);
    ScoredKernelSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_kernel_header();
    }
    PortMap port_map;
    PortedPairs ported;
    if (rows.wanted() || !port_map_.empty() || ported_) {
      sink = [&](const ScoredKernel& scored) {
        if (rows.wanted()) rows.stream() << scored_kernel_row(scored);
        if (!port_map_.empty()) port_map.add(scored);
        if (ported_) ported.add(scored);
      };
    }
    const Tier tier = tier_from_name(tier_).value();
    request.calibrations = library.calibrations();
    const Validation validation = validate_kernels(
        request, library.hardware(),
        [&](const Device& device, Caches caches) {
          return library.benchmark_predictor(device, tier, library.calibrations(), caches);
        },
        sink);
    rows.close();
    Answer answer = validation_answer(validation, "kernels");
    if (!port_map_.empty()) {
      const std::vector<FamilyPortability> families = port_map.families();
      write_file(port_map_, port_map_svg(families));
      answer.text += "\n" + port_map_text(families) + fmt::format("wrote {}\n", port_map_);
      answer.json.set("port_map", port_map_json(families));
    }
    if (ported_) {
      const std::vector<PortedPair> pairs = ported.pairs();
      answer.text += "\n" + ported_pairs_text(pairs);
      answer.json.set("ported", ported_pairs_json(pairs));
    }
    return answer;
  }

 private:
  // A fifth of the rows of a generation that the calibrations have never seen.
  Answer without_generation(const Library& library, KernelValidationRequest request) const {
    options_->refuse({"--tier", "--campaign", "--out", "--port-map", "--ported"}, {}, "--without");
    const auto calibrations = withheld_.calibrations(library, options_->calibration(), {data_}, request.families);
    request.held_out_only = true;
    request.generation = calibrations->generation();
    return withheld_answer("kernels", calibrations->generation(), [&](Tier tier) {
      return validate_kernels(request, library.hardware(), [&](const Device& device, Caches caches) {
        return library.benchmark_predictor(device, tier, calibrations->folder(), caches);
      });
    });
  }

  const Options* options_ = nullptr;
  WithheldFlags withheld_;
  std::string data_, out_, port_map_, campaign_, tier_ = "best";
  bool ported_ = false;
  int64_t threads_ = 0;
  KernelValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_kernels() {
  return std::make_unique<ValidateKernels>();
}

}  // namespace foretoken
