#include <vector>

#include "app/cli/commands/list.h"
#include "app/cli/commands/validate/list.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type after `validate`.
constexpr CommandKind layers[] = {
    {"kernels", "Single kernels: a folder of <device>/<family>.csv[.gz]", make_validate_kernels},
    {"steps", "Whole model steps: one CSV file", make_validate_steps},
    {"collectives", "Collectives: a table of measurements, or a folder of them", make_validate_collectives},
    {"training", "Training runs: one CSV file", make_validate_training},
    {"memory", "Training memory: published figures, or runs known to fit", make_validate_memory},
    {"serving", "Operating points of serving engines: one CSV file", make_validate_serving},
    {"calibration", "Deployments calibrated on some of their runs: one CSV file, or folders",
     make_validate_calibration},
    {"accel", "Accelerators: files of published cases, or a folder of them", make_validate_accelerator},
    {"edge", "Fused kernels on CPUs and phones: one CSV file", make_validate_edge},
};

class ValidateCommand : public Command {
 public:
  void declare(Options& options) override {
    for (const CommandKind& layer : layers) {
      Options& own = options.subcommand(std::string(layer.name), std::string(layer.summary));
      declared_.push_back({.options = &own, .command = layer.make()});
      declared_.back().command->declare(own);
    }
  }

  Answer run(const Library& library) const override {
    for (const Declared& layer : declared_) {
      if (layer.options->was_chosen()) return layer.command->run(library);
    }
    throw InternalError("the parser requires a layer");
  }

 private:
  struct Declared {
    const Options* options = nullptr;
    std::unique_ptr<Command> command;
  };
  std::vector<Declared> declared_;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace foretoken
