#include "kernel/forms/eager_form.h"

#include "kernel/forms/form_math.h"
#include "kernel/forms/gemm_form.h"
#include "model/work.h"

namespace foretoken {
namespace eager_form {
namespace {

enum Constant { gap_before, gap_after, picojoules, constant_count };

constexpr FormConstant table[constant_count] = {
    {"gap_before", 14e-6, 1e-6, 100e-6, "seconds from the first event to the start of the kernel"},
    {"gap_after", 14e-6, 1e-6, 100e-6, "seconds from the launch to the second event"},
    {"picojoules_per_flop", 13, 3, 60, "of fp32 multiplies, at the board's power limit, on 16 to 7 nm"},
};

constexpr std::string_view eager = "eager";

struct Timed {
  double kernel = 0;  // seconds of the kernel alone
  double power = 0;   // seconds its energy takes at the power limit
  double event = 0;   // as events around the call would time it
};

class EagerForm : public Form {
 public:
  EagerForm(std::unique_ptr<Form> kernel, std::string_view name) : kernel_(std::move(kernel)), name_(name) {
    constants_.assign(kernel_->constants().begin(), kernel_->constants().end());
    constants_.insert(constants_.end(), std::begin(table), std::end(table));
  }

  std::string_view name() const override { return name_; }
  std::span<const FormConstant> constants() const override { return constants_; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    std::vector<std::string> names = kernel_->effects(bare(call), device);
    if (device.amd) names.emplace_back("amd");
    if (const auto* gemm = std::get_if<GemmShape>(&call.shape); gemm != nullptr && gemm->batch > 1)
      names.emplace_back("batched");
    if (is_event_timed(call.variant) && call.variant.size() > eager.size())
      names.push_back("host" + call.variant.substr(eager.size()));
    return names;
  }

  // Measured apart: a linear layer's weights lie transposed, and cuBLAS has other kernels for batches.
  std::string_view usual_variant(const FormCall& call, const DeviceTraits& /*device*/) const override {
    const auto* gemm = std::get_if<GemmShape>(&call.shape);
    if (gemm == nullptr) return eager;
    return gemm->batch > 1 ? "eager bmm" : "eager linear";
  }

  std::vector<size_t> machine_constants() const override {
    const size_t own = kernel_->constants().size();
    return {own + gap_before, own + gap_after};
  }
  // "eager" alone names no operation of the sweep's campaign.
  bool is_of_another_machine(const FormCall& call) const override { return call.variant == eager; }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Timed timed = time(call, device, constants, choice);
    return is_event_timed(call.variant) ? timed.event : timed.kernel;
  }

  size_t feature_count() const override { return kernel_->feature_count() + 2; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    const size_t own = kernel_->feature_count();
    kernel_->features(bare(call), device, constants.first(kernel_->constants().size()), choice, out.first(own));
    const Timed timed = time(call, device, constants, choice);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-3))); };
    out[own] = log(timed.kernel / timed.event);
    out[own + 1] = log(timed.power / timed.kernel);
  }

  double residual_share(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                        int choice) const override {
    if (is_event_timed(call.variant)) return 1;
    const Timed timed = time(call, device, constants, choice);
    return timed.kernel / timed.event;
  }

 private:
  static FormCall bare(const FormCall& call) {
    return is_framework_kernel(call.variant) ? FormCall{.shape = call.shape, .variant = {}, .keys = call.keys} : call;
  }

  Timed time(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int& choice) const {
    const size_t own = kernel_->constants().size();
    const std::span<const double> added = constants.subspan(own);
    Timed result{.kernel = kernel_->seconds(bare(call), device, constants.first(own), choice)};
    if (std::holds_alternative<GemmShape>(call.shape) && device.power > 0) {
      result.power = count_work(call.shape).flops.value() * added[picojoules] * 1e-12 *
                     device.generation->relative_multiply_energy / device.power;
      result.kernel = soft_maximum(result.kernel, result.power, 6);
    }
    result.event = added[gap_before] + soft_maximum(result.kernel, added[gap_after], 6);
    return result;
  }

  std::unique_ptr<Form> kernel_;
  std::string_view name_;
  std::vector<FormConstant> constants_;
};

}  // namespace
}  // namespace eager_form

bool is_framework_kernel(std::string_view variant) {
  return variant == framework_kernel || is_event_timed(variant);
}

bool is_event_timed(std::string_view variant) {
  return variant == eager_form::eager ||
         (variant.starts_with(eager_form::eager) && variant[eager_form::eager.size()] == ' ');
}

std::unique_ptr<Form> make_eager_form(std::unique_ptr<Form> kernel, std::string_view name) {
  return std::make_unique<eager_form::EagerForm>(std::move(kernel), name);
}

std::unique_ptr<Form> make_gemm_fp32_form(Caches caches) {
  return make_eager_form(make_gemm_form(caches), "gemm_fp32");
}

}  // namespace foretoken
