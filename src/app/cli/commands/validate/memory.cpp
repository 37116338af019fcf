#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "base/csv.h"
#include "report/parts/table.h"
#include "validate/training/validate_memory.h"

namespace foretoken {
namespace {

class ValidateMemory : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of published memory figures, or of training runs known to fit", true);
    options.footer(
        "Memory figures: model, layers, hidden, heads, seq, vocab, tp, pp, vpp, micro_batch, sp, recompute, "
        "quantity,\nvalue, unit. Training runs have the columns of `validate training`; all of them ran, so predicting "
        "that one\ndoes not fit is an error. With a column peak_allocated_gb (what torch.cuda.max_memory_allocated "
        "gives,\nin 10^9 bytes), that peak is scored.\nExample:\n  foretoken validate memory --data runs.csv");
  }

  Answer run(const Library& library) const override {
    CsvReader table{std::filesystem::path(data_)};
    if (is_printed_memory(table)) return validation_answer(validate_printed_memory(std::move(table)), "memory");
    const HardwareCatalogue hardware = library.hardware();
    // Memory needs no kernels.
    TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                              [](const Cluster& cluster) {
                                return std::make_unique<MachineModels>(cluster, KernelPredictor(cluster.node.device),
                                                                       std::nullopt, std::nullopt);
                              });
    if (is_measured_memory(table)) return validation_answer(validate_measured_memory(data_, cases), "memory");
    const MemoryOfRuns runs = validate_memory_of_runs(data_, cases);
    Answer answer;
    Json notes = Json::array(), skipped = Json::array();
    for (const std::string& note : runs.validation.notes) {
      answer.text += wrap_lines(note + "\n", page_width(), 2);
      notes.push(note);
    }
    for (const SkippedRows& row : runs.validation.skipped) {
      answer.text += wrap_lines(fmt::format("skipped row {}: {}\n", row.row, row.why), page_width(), 2);
      skipped.push(Json::object({{"file", row.file}, {"row", row.row}, {"why", row.why}}));
    }
    answer.json = Json::object({{"layer", "memory"},
                                {"runs", runs.runs},
                                {"fits", runs.fit},
                                {"tight", runs.tight},
                                {"too_large", runs.too_large},
                                {"skipped", std::move(skipped)},
                                {"notes", std::move(notes)}});
    return answer;
  }

 private:
  std::string data_;
};

}  // namespace

std::unique_ptr<Command> make_validate_memory() {
  return std::make_unique<ValidateMemory>();
}

}  // namespace foretoken
