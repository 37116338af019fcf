#include <filesystem>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "hardware/catalogue.h"
#include "report/step/image_report.h"

namespace foretoken {
namespace {

class ImageCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--model", model_, "Diffusion model: flux.1-dev, sd3-medium, sdxl, or a JSON file", true);
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
    ImageQuestion question{.model = find_model(library),
                           .size = size_,
                           .steps = steps_,
                           .scheme = scheme_from_name(scheme_).value(),
                           .device = predictor.device()};
    if (question.steps == 0) question.steps = question.model.usual_steps;
    const ImageEstimate estimate =
        estimate_image(question.model, question.size, question.steps, question.scheme, predictor);
    return {.text = image_text(question, estimate), .json = image_json(question, estimate)};
  }

 private:
  ImageModel find_model(const Library& library) const {
    if (HardwareCatalogue::is_path(model_)) return read_image_model(model_);
    const std::filesystem::path folder = library.directory() / "image_models";
    const std::vector<std::string> names = file_stems(folder);
    for (const std::string& name : names) {
      if (comparable_name(name) == comparable_name(model_)) return read_image_model(folder / (name + ".json"));
    }
    throw InputError({.source = "--model",
                      .value = model_,
                      .expected = "flux.1-dev, sd3-medium, sdxl or a JSON file",
                      .suggestion = nearest_name(model_, names).value_or("")});
  }

  std::string model_, device_, scheme_ = "bf16", tier_ = "best";
  ImageSize size_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_image() {
  return std::make_unique<ImageCommand>();
}

}  // namespace foretoken
