#include <algorithm>

#include <fmt/format.h>

#include "accelerator/pim/prim_benchmarks.h"
#include "app/cli/commands/list.h"
#include "app/cli/grammar/shipped_file.h"
#include "base/error.h"
#include "report/chip/pim_report.h"

namespace foretoken {
namespace {

class PimCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--device", device_, "Built-in machine (upmem) or a JSON file");
    options.choice("--program", program_, prim_benchmark_names(), "PrIM benchmark", true);
    options.integer("--size", size_, {.least = 1, .most = int64_t{1} << 40}, "Number of elements, or of matrix rows",
                    true);
    options.integer("--dpus", dpus_, {.least = 1, .most = 1 << 20}, "Number of DRAM processing units (DPUs)");
    options.integer("--tasklets", tasklets_, {.least = 0, .most = 1024}, "Threads per DPU; 0 = PrIM's default");
    options.footer(
        "The kernel time is the longer of its instructions and its DMA transfers; the host moves data before and "
        "after.\nExamples:\n  foretoken pim --program VA --size 1048576 --dpus 64\n  foretoken pim --program GEMV "
        "--size 8192 --dpus 512 --tasklets 8 --json");
  }

  Answer run(const Library& library) const override {
    const PimDevice device = read_pim_device(shipped_file("--device", library.directory() / "accelerators" / "pim",
                                                          device_, "a machine that computes in memory"));
    PimKernel kernel = prim_kernel(device, program_, size_, dpus_).value();
    if (tasklets_ > 0) {
      kernel.tasklets = tasklets_;
      // Only PrIM's own were measured.
      kernel.is_outside = kernel.is_outside || kernel.confidence < Confidence::extrapolated;
      kernel.confidence = std::max(kernel.confidence, Confidence::extrapolated);
    }
    const PimReport report{.device = device,
                           .program = program_,
                           .size = size_,
                           .kernel = kernel,
                           .estimate = estimate_pim(device, kernel)};
    return {.text = pim_text(report), .json = pim_json(report)};
  }

 private:
  std::string device_ = "upmem", program_;
  int64_t size_ = 0, dpus_ = 64, tasklets_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_pim() {
  return std::make_unique<PimCommand>();
}

}  // namespace foretoken
