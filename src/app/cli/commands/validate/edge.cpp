#include "app/cli/commands/validate/list.h"
#include "app/cli/out_file.h"
#include "app/cli/shipped_file.h"
#include "kernel/edge/edge_predictor_file.h"
#include "report/edge_report.h"
#include "report/validation_report.h"

namespace foretoken {
namespace {

class ValidateEdge : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of measured kernels: kind, params, cpu_ms_min", true);
    options.text("--device", device_,
                 "Predictor of a device: a name of the library, or a file that fit edge-kernels wrote");
    options.text("--out", out_, "Write every kernel with what was measured and predicted to this CSV file");
    options.footer(
        "Example:\n  foretoken validate edge --data measurements/edge/host_ort_kernels.csv --device neoverse_v1_ort");
  }

  Answer run(const Library& library) const override {
    const EdgePredictor predictor = read_edge_predictor(
        shipped_file("--device", library.directory() / "edge" / "devices", device_, "edge predictor"));
    OutFile file("--out", out_);
    ScoredEdgeSink sink;
    if (file.wanted()) {
      file.stream() << scored_edge_header();
      sink = [&](const ScoredEdge& scored) { file.stream() << scored_edge_row(scored); };
    }
    const Validation validation = validate_edge_kernels(predictor, read_edge_rows(data_), data_, sink);
    file.close();
    return {.text = validation_text(validation), .json = validation_json(validation, "edge")};
  }

 private:
  std::string data_, out_;
  std::string device_ = "neoverse_v1_ort";
};

}  // namespace

std::unique_ptr<Command> make_validate_edge() {
  return std::make_unique<ValidateEdge>();
}

}  // namespace foretoken
