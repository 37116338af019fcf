#include <cstdlib>
#include <vector>

#include "app/cli/commands/list.h"
#include "app/cli/commands/validate/all.h"
#include "app/cli/commands/validate/list.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type after `validate`.
constexpr CommandKind layers[] = {
    {"kernels", "Single kernels: a folder of <device>/<family>.csv[.gz]", make_validate_kernels},
    {"schedules", "Ranking of the tile schedules of a matrix multiply: one CSV file", make_validate_schedules},
    {"steps", "Whole model steps: one CSV file", make_validate_steps},
    {"images", "Steps and decoders of image models: one CSV file", make_validate_images},
    {"collectives", "Collectives: a table of measurements, or a folder of them", make_validate_collectives},
    {"training", "Training runs: one CSV file", make_validate_training},
    {"memory", "Training memory: published figures, or runs known to fit", make_validate_memory},
    {"moe-layer", "Single layers of routed experts in training: one CSV file", make_validate_moe_layer},
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
    options.make_subcommand_optional();
    options.heading("All layers");
    options.flag("--all", all_, "Check every layer on the measurements at hand, and report them together");
    options.text("--data", data_,
                 "With --all: folder of measurements (kernels, comm, serving, ...) [$FORETOKEN_DATA, else only those "
                 "that ship]");
    options.integer("--serving-every", wanted_.serving_every, {.least = 1, .most = 1'000'000},
                    "With --all: score every Nth serving point, because all of them take nine minutes of CPU");
    options.text("--history", history_,
                 "With --all: file of earlier runs (JSON Lines) to compare with; this run is appended");
    options.text("--html", wanted_.html, "With --all: write the report as an HTML page");
    options.text("--date", wanted_.date, "With --all: date of this run in the history [today]");
    options.footer(
        "Examples:\n  foretoken validate steps --data data/measured/h200_sxm/steps.csv\n  foretoken validate --all "
        "--history validation.jsonl --html validation.html");
  }

  Answer run(const Library& library) const override {
    for (const Declared& layer : declared_) {
      if (layer.options->was_chosen()) return layer.command->run(library);
    }
    if (!all_) throw InputError({.source = "validate", .expected = "a layer, or --all for every layer"});
    ValidateAll wanted = wanted_;
    const char* usual = std::getenv("FORETOKEN_DATA");
    wanted.data = data_.empty() && usual != nullptr ? usual : data_;
    wanted.history = history_;
    return validate_all(wanted, library);
  }

 private:
  struct Declared {
    const Options* options = nullptr;
    std::unique_ptr<Command> command;
  };
  std::vector<Declared> declared_;
  bool all_ = false;
  ValidateAll wanted_;
  std::string data_, history_;
};

}  // namespace

std::unique_ptr<Command> make_validate() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace foretoken
