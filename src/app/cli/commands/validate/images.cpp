#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "validate/images/validate_images.h"

namespace foretoken {
namespace {

class ValidateImages : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of measured steps and decoders", true);
    declare_calibration(options);
    options.text("--out", out_, "Write every row with measured and predicted times and memory to this CSV file");
    options.footer(
        "Columns: device, model, part (step or decoder), mode, images, side, sustained_ms, peak_gb. Rows whose mode is "
        "not\n`compiled` are not scored: predictions assume that kernels run back to back.\nExample:\n  foretoken "
        "validate images --data data/measured_images/h200_sxm.csv");
  }

  Answer run(const Library& library) const override {
    OutFile rows("--out", out_);
    ScoredImageSink sink;
    if (rows.wanted()) {
      rows.stream()
          << "device,model,part,images,side,measured_ms,predicted_ms,low_ms,high_ms,measured_gb,predicted_gb\n";
      sink = [&](const ScoredImageRow& one) {
        rows.stream() << fmt::format("{},{},{},{},{},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g}\n", one.device,
                                     one.model, one.part, one.images, one.side, one.measured_ms, one.predicted_ms,
                                     one.low_ms, one.high_ms, one.measured_gb, one.predicted_gb);
      };
    }
    const Validation validation = validate_images(data_, library, sink);
    rows.close();
    if (validation.overall.n == 0 && validation.skipped.empty()) {
      throw InputError({.source = data_, .value = "no compiled rows", .expected = "at least one"});
    }
    return validation_answer(validation, "images");
  }

 private:
  std::string data_, out_;
};

}  // namespace

std::unique_ptr<Command> make_validate_images() {
  return std::make_unique<ValidateImages>();
}

}  // namespace foretoken
