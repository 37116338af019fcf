#include "kernel/forms/mla_projection_form.h"

#include "base/error.h"
#include "kernel/forms/gemm_form.h"

namespace foretoken {
namespace mla_projection_form {
namespace {

// The GEMM form with a batch of heads; its constants are fitted on the projections themselves.
class MlaProjectionForm : public Form {
 public:
  explicit MlaProjectionForm(Caches caches) : gemm_(make_gemm_form(caches)) {}

  std::string_view name() const override { return "mla_bmm"; }
  std::span<const FormConstant> constants() const override { return gemm_->constants(); }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return gemm_->effects(as_gemm(call, device), device);
  }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const LatentProjectionShape& shape = shape_of(call);
    return static_cast<uint64_t>(shape.scheme) << 1U | (shape.post ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    return gemm_->seconds(as_gemm(call, device), device, constants, choice);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    return gemm_->explain(as_gemm(call, device), device, constants, choice);
  }

  size_t feature_count() const override { return gemm_->feature_count(); }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    gemm_->features(as_gemm(call, device), device, constants, choice, out);
  }

 private:
  static const LatentProjectionShape& shape_of(const FormCall& call) {
    const auto* shape = std::get_if<LatentProjectionShape>(&call.shape);
    ensure(shape != nullptr, "the projection form is asked about a latent projection");
    return *shape;
  }

  // Where TensorRT-LLM widens fp8 weights once, at load, it multiplies in bf16: measured times are those of bf16.
  // Elsewhere it quantizes the inputs in blocks and multiplies in fp8.
  static Scheme multiplied_scheme(const FormCall& call, Scheme stored, const DeviceTraits& device) {
    if (stored != Scheme::fp8) return stored;
    const bool widens = call.variant == "bmm_out_dequant_bf16" ||
                        (call.variant.empty() && device.generation->widens_latent_projections);
    return widens ? Scheme::bf16 : stored;
  }

  static FormCall as_gemm(const FormCall& call, const DeviceTraits& device) {
    const LatentProjectionShape& projection = shape_of(call);
    const int64_t outputs = projection.post ? projection.head_dim : projection.latent_dim;
    const int64_t inputs = projection.post ? projection.latent_dim : projection.head_dim;
    return {.shape = GemmShape{.m = projection.tokens,
                               .n = outputs,
                               .k = inputs,
                               .batch = projection.heads,
                               .scheme = multiplied_scheme(call, projection.scheme, device)},
            .variant = {}};
  }

  std::unique_ptr<Form> gemm_;
};

}  // namespace
}  // namespace mla_projection_form

std::unique_ptr<Form> make_mla_projection_form(Caches caches) {
  return std::make_unique<mla_projection_form::MlaProjectionForm>(caches);
}

}  // namespace foretoken
