#include "app/cli/commands/list.h"
#include "base/error.h"
#include "report/kernel/schedule_report.h"

namespace foretoken {
namespace {

class SchedulesCommand : public Command {
 public:
  void declare(Options& options) override {
    constexpr Range<int64_t> sizes{.least = 1, .most = 10'000'000};
    options.text("--device", device_, "Built-in name (`foretoken devices` lists them) or a device JSON file", true);
    options.integer("--m", shape_.m, sizes, "Rows of the result");
    options.integer("--n", shape_.n, sizes, "Columns of the result");
    options.integer("--k", shape_.k, sizes, "Inner dimension (length of the dot products)");
    options.choice("--dtype", dtype_, {"bf16", "fp16"}, "Number format");
    options.integer("--show", shown_, {.least = 1, .most = 1000}, "Number of schedules to list");
    options.footer(
        "Ranks schedules (tile size, pipeline stages, warps, order of tiles) of a Triton matrix multiply by an "
        "analytic\nmodel, before any schedule is compiled. `kernel gemm` predicts the kernel of the vendor's "
        "library.\nExample:\n  "
        "foretoken schedules --device h200_sxm --m 4096 --n 4096 --k 8192");
  }

  Answer run(const Library& library) const override {
    const Device device = library.hardware().device(device_);
    GemmShape shape = shape_;
    shape.scheme = scheme_from_name(dtype_).value();
    const std::vector<RankedSchedule> ranked = rank_schedules(shape, usual_schedules(), device);
    const auto shown = static_cast<size_t>(shown_);
    return {.text = schedules_text(shape, device, ranked, shown), .json = schedules_json(shape, device, ranked, shown)};
  }

 private:
  std::string device_, dtype_ = "bf16";
  GemmShape shape_{.m = 4096, .n = 4096, .k = 4096};
  int64_t shown_ = 10;
};

}  // namespace

std::unique_ptr<Command> make_schedules() {
  return std::make_unique<SchedulesCommand>();
}

}  // namespace foretoken
