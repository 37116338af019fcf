#include <vector>

#include "app/cli/commands/list.h"
#include "app/cli/commands/plan/list.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type after `plan`.
constexpr CommandKind questions[] = {
    {"serve", "Which hardware and layout serves a model within its limits, and for what", make_plan_serve},
    {"train", "The fastest ways to lay a training job out on a cluster", make_plan_train},
    {"hardware", "What a step's time hangs on: what if the device had other numbers", make_plan_hardware},
    {"accel", "Search the designs around an accelerator: the best sizes for some work", make_plan_accel},
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
