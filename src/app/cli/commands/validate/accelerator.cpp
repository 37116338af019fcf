#include "accelerator/validate/validate_accelerator.h"
#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/output/out_file.h"
#include "report/accuracy/validation_report.h"

namespace foretoken {
namespace {

class ValidateAccelerator : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "File or folder of cases [the shipped cases, published for real chips]");
    options.list("--cases", request_.cases, "Only these cases (comma-separated)");
    options.list("--figures", request_.figures, "Only figures whose names contain one of these: cycles, energy, reads");
    options.choice("--group-by", request_.group_by, {"file", "case", "figure"}, "How to group the results");
    options.text("--out", out_, "Write every figure, expected and predicted, to this CSV file");
    options.footer(
        "Reads case files with results of Timeloop, Sparseloop, MAESTRO and SCALE-Sim (architecture, problem, "
        "mapping\nand result) and tables of programs measured on TPU v3 (workload,tpuv3_cycles). Errors are "
        "percentages; figures that are zero are compared but not averaged.\nExample:\n  foretoken validate accel "
        "--data measurements/accelerator --group-by figure");
  }

  Answer run(const Library& library) const override {
    AcceleratorValidationRequest request = request_;
    request.shipped = library.directory() / "accelerators";
    request.data = data_.empty() ? request.shipped / "published" : std::filesystem::path(data_);
    OutFile rows("--out", out_);
    ScoredFigureSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_figure_header();
      sink = [&](const ScoredFigure& scored) { rows.stream() << scored_figure_row(scored); };
    }
    const Validation validation = validate_accelerator(request, sink);
    rows.close();
    return validation_answer(validation, "accel");
  }

 private:
  std::string data_, out_;
  AcceleratorValidationRequest request_{.group_by = "file"};
};

}  // namespace

std::unique_ptr<Command> make_validate_accelerator() {
  return std::make_unique<ValidateAccelerator>();
}

}  // namespace foretoken
