#include <fmt/format.h>

#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "validate/training/validate_moe_layer.h"

namespace foretoken {
namespace {

class ValidateMoeLayer : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of measured layers", true);
    options.text("--stack", stack_,
                 "Training stack whose constants to use; the default was not fitted to expert layers");
    declare_calibration(options);
    options.text("--out", out_, "Write every pass of every layer with measured and predicted times to this CSV file");
    options.footer(
        "Columns: case, gpu, n_gpus, seq, micro_batch, hidden, moe_ffn, experts, topk, shared_ffn, tp, ep, dispatcher "
        "(a2a,\ndeepep, hybridep), dtype, forward_ms, backward_ms. Experts have two matrices unless a column gated is "
        "1.\nNothing hides the communication of a layer that runs by itself.\nExample:\n  foretoken validate moe-layer "
        "--data moe_layer.csv");
  }

  Answer run(const Library& library) const override {
    const MoeLayerRequest request{
        .data = data_, .stack = training_stacks_of(library).stack(stack_), .clusters = run_clusters_of(library)};
    OutFile rows("--out", out_);
    ScoredMoeLayerSink sink;
    if (rows.wanted()) {
      rows.stream() << "case,pass,measured_ms,predicted_ms,low_ms,high_ms\n";
      sink = [&](const ScoredMoeLayer& one) {
        rows.stream() << fmt::format("{},{},{:.4g},{:.4g},{:.4g},{:.4g}\n", one.name, one.pass, one.measured_ms,
                                     one.predicted_ms, one.low_ms, one.high_ms);
      };
    }
    const Validation validation = validate_moe_layers(
        request, library.hardware(), [&](const Cluster& cluster) { return machine_of(library, cluster); }, sink);
    rows.close();
    if (validation.overall.n == 0 && validation.skipped.empty()) {
      throw InputError({.source = data_, .value = "no rows", .expected = "at least one layer"});
    }
    return validation_answer(validation, "moe-layer");
  }

 private:
  std::string data_, out_, stack_ = "megatron-core-2024";
};

}  // namespace

std::unique_ptr<Command> make_validate_moe_layer() {
  return std::make_unique<ValidateMoeLayer>();
}

}  // namespace foretoken
