#include "kernel/forms/mla_projection_form.h"

#include "base/error.h"
#include "kernel/forms/gemm_form.h"

namespace foretoken {
namespace {

// The GEMM form with a batch of heads; its constants are fitted on the projections themselves.
class MlaProjectionForm : public Form {
 public:
  explicit MlaProjectionForm(Caches caches) : gemm_(make_gemm_form(caches)) {}

  std::string_view name() const override { return "mla_bmm"; }
  std::span<const FormConstant> constants() const override { return gemm_->constants(); }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return gemm_->effects(as_gemm(call), device);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    return gemm_->seconds(as_gemm(call), device, constants, choice);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    return gemm_->explain(as_gemm(call), device, constants, choice);
  }

  size_t feature_count() const override { return gemm_->feature_count(); }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    gemm_->features(as_gemm(call), device, constants, choice, out);
  }

 private:
  static FormCall as_gemm(const FormCall& call) {
    const auto* projection = std::get_if<LatentProjectionShape>(&call.shape);
    ensure(projection != nullptr, "the projection form is asked about a latent projection");
    const int64_t outputs = projection->post ? projection->head_dim : projection->latent_dim;
    const int64_t inputs = projection->post ? projection->latent_dim : projection->head_dim;
    return {.shape = GemmShape{.m = projection->tokens,
                               .n = outputs,
                               .k = inputs,
                               .batch = projection->heads,
                               .scheme = projection->scheme},
            .variant = {}};
  }

  std::unique_ptr<Form> gemm_;
};

}  // namespace

std::unique_ptr<Form> make_mla_projection_form(Caches caches) {
  return std::make_unique<MlaProjectionForm>(caches);
}

}  // namespace foretoken
