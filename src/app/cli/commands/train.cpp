#include "app/cli/commands/list.h"
#include "app/cli/tier_flag.h"
#include "app/cli/training_flags.h"
#include "report/training_report.h"

namespace foretoken {
namespace {

class TrainCommand : public Command {
 public:
  void declare(Options& options) override {
    flags_.declare(options);
    options.heading("Prediction");
    options.choice("--tier", tier_, tier_names(), tier_help);
    options.footer(
        "Examples:\n"
        "  foretoken train --model Llama-3.1-405B --cluster h100_roce_pods --devices 16384 -tp 8 -pp 16\n"
        "      --num-virtual-stages-per-pipeline-rank 8 --sequence-parallel --seq-length 8192\n"
        "      --global-batch-size 2048 --sharding gradients --train-tokens 15T\n"
        "  foretoken train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 --sharding parameters\n"
        "      --micro-batch-size 2 --global-batch-size 128 --stack llm-foundry");
  }

  Answer run(const Library& library) const override {
    const TrainingQuestion question = flags_.question(library);
    const std::unique_ptr<MachineModels> machine = library.machine(question.cluster, tier_from_name(tier_).value());
    const TrainingEstimate estimate = estimate_training(question, *machine);
    std::string text = training_text(question, estimate);
    Json json = training_json(question, estimate);
    Json notes = Json::array();
    for (const std::string& note : flags_.notes()) {
      text += "note: " + note + "\n";
      notes.push(note);
    }
    json.set("notes", std::move(notes));
    return {.text = std::move(text), .json = std::move(json)};
  }

 private:
  TrainingFlags flags_;
  std::string tier_ = "best";
};

}  // namespace

std::unique_ptr<Command> make_train() {
  return std::make_unique<TrainCommand>();
}

}  // namespace foretoken
