#include "app/cli/commands/list.h"
#include "report/kernel/stack_report.h"
#include "report/training/training_stack_report.h"

namespace foretoken {
namespace {

class StacksCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_, "Stack (or a stack file) to show in full; without it, all are listed");
    options.footer(
        "Examples:\n"
        "  foretoken stacks\n"
        "  foretoken stacks vllm\n"
        "  foretoken stacks torchtitan\n"
        "  foretoken stacks torch-graph --json");
  }

  Answer run(const Library& library) const override {
    const StackCatalogue catalogue = stacks_of(library);
    const TrainingStackCatalogue training = training_stacks_of(library);
    if (is_training_stack(training, name_)) {
      const TrainingStack stack = training.stack(name_);
      return {.text = training_stack_text(stack), .json = training_stack_json(stack)};
    }
    if (!name_.empty()) {
      const Stack stack = catalogue.stack(name_);
      return {.text = stack_text(stack), .json = stack_json(stack)};
    }
    std::vector<Stack> stacks;
    for (const std::string& name : catalogue.names()) stacks.push_back(catalogue.stack(name));
    return {.text = stack_list_text(stacks) + "\n" + training_stack_list_text(training.all()) +
                    "\n`foretoken stacks NAME` shows one with its costs and source.\n",
            .json = Json::object(
                {{"stacks", stack_list_json(stacks)}, {"training_stacks", training_stack_list_json(training.all())}})};
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_stacks() {
  return std::make_unique<StacksCommand>();
}

}  // namespace foretoken
