#include <vector>

#include "app/cli/commands/list.h"
#include "app/cli/commands/plan/list.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type after `plan`.
constexpr CommandKind questions[] = {
    {"serve", "Find hardware and a layout that serve a model within latency goals, and the cost", make_plan_serve},
    {"train", "Find the fastest layouts of a training job on a cluster", make_plan_train},
    {"hardware", "Show how a step's time depends on the device: what if it had other numbers", make_plan_hardware},
    {"accel", "Search designs around an accelerator: the best sizes for some work", make_plan_accel},
};

class PlanCommand : public Command {
 public:
  void declare(Options& options) override {
    for (const CommandKind& question : questions) {
      Options& own = options.subcommand(std::string(question.name), std::string(question.summary));
      declared_.push_back({.options = &own, .command = question.make()});
      declared_.back().command->declare(own);
    }
  }

  Answer run(const Library& library) const override {
    for (const Declared& question : declared_) {
      if (question.options->was_chosen()) return question.command->run(library);
    }
    throw InternalError("the parser requires a question");
  }

 private:
  struct Declared {
    const Options* options = nullptr;
    std::unique_ptr<Command> command;
  };
  std::vector<Declared> declared_;
};

}  // namespace

std::unique_ptr<Command> make_plan() {
  return std::make_unique<PlanCommand>();
}

}  // namespace foretoken
