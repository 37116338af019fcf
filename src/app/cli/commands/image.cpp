#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "report/step/image_report.h"

namespace foretoken {
namespace {

class ImageCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text(
        "--model", model_,
        "Diffusion model: flux.1-dev, flux.1-schnell, qwen-image, sd3-medium, sd3.5-large, sd3.5-large-turbo, sdxl, "
        "the name of such a checkpoint, or a JSON file",
        true);
    options.text("--device", device_, "Built-in name (`foretoken devices` lists them) or a device JSON file", true);
    options.integer("--height", size_.height, {.least = 16, .most = 8192}, "Height of an image in pixels");
    options.integer("--width", size_.width, {.least = 16, .most = 8192}, "Width of an image in pixels");
    options.integer("--images", size_.images, {.least = 1, .most = 1024}, "Number of images generated together");
    options.integer("--steps", steps_, {.least = 0, .most = 1000},
                    "Number of denoising steps; 0 = usual for the model");
    options.choice("--quantization,-q", scheme_, scheme_names(), "Number format of linear layers and convolutions");
    declare_kernel_source(options, tier_);
    options.footer(
        "Example:\n  foretoken image --model sdxl --device a100_sxm --steps 30\n  foretoken image --model flux.1-dev "
        "--device h100_sxm -q fp8 --images 4");
  }

  Answer run(const Library& library) const override {
    const KernelPredictor predictor = library.predictor(device_, tier_from_name(tier_).value());
    const Device& device = predictor.device();
    const Scheme asked = scheme_from_name(scheme_).value();
    ImageQuestion question{.setup = {.model = find_image_model(model_, library),
                                     .size = size_,
                                     .steps = steps_,
                                     .scheme = run_image_on(asked, device)},
                           .asked = asked,
                           .device = device};
    if (steps_ == 0) question.setup.steps = question.setup.model.usual_steps;
    const ImageEstimate estimate = estimate_image(question.setup, predictor, library.power_model(device));
    return {.text = image_text(question, estimate),
            .json = image_json(question, estimate),
            .failure = image_failure(question, estimate)};
  }

 private:
  std::string model_, device_, scheme_ = "bf16", tier_ = "best";
  ImageSize size_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_image() {
  return std::make_unique<ImageCommand>();
}

}  // namespace foretoken
