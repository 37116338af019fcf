#include "compose/diffusion/image_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/diffusion/image_estimate.h"
#include "library/library.h"
#include "model/work.h"

namespace foretoken::image_model_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

ImageModel shipped(const std::string& name) {
  return read_image_model(data / "image_models" / (name + ".json"));
}

double flops(const std::vector<ImageKernel>& kernels) {
  double sum = 0;
  for (const ImageKernel& kernel : kernels)
    sum += count_work(kernel.shape).flops.value() * static_cast<double>(kernel.count);
  return sum;
}

TEST(ImageModel, shipped_models_have_as_many_weights_as_published) {
  EXPECT_NEAR(denoiser_parameters(shipped("flux.1-dev")), 11.9e9, 0.02 * 11.9e9);
  EXPECT_NEAR(denoiser_parameters(shipped("sd3-medium")), 2.03e9, 0.02 * 2.03e9);
  EXPECT_NEAR(denoiser_parameters(shipped("sdxl")), 2.57e9, 0.02 * 2.57e9);
  EXPECT_NEAR(denoiser_parameters(shipped("flux.1-schnell")), 11.9e9, 0.02 * 11.9e9);
  EXPECT_NEAR(denoiser_parameters(shipped("sd3.5-large")), 8.06e9, 0.02 * 8.06e9);
  EXPECT_NEAR(denoiser_parameters(shipped("qwen-image")), 20.4e9, 0.02 * 20.4e9);
}

TEST(ImageModel, checkpoints_are_found_by_their_names) {
  const Library library(data, {});
  EXPECT_EQ(find_image_model("black-forest-labs/FLUX.1-schnell", library).name, "flux.1-schnell");
  EXPECT_EQ(find_image_model("SDXL", library).name, "sdxl");
  try {
    find_image_model("stabilityai/sdxl-turbo", library);
    FAIL() << "nobody knows it";
  } catch (const InputError& error) {
    EXPECT_NE(error.problem().expected.find("sdxl"), std::string::npos) << error.problem().expected;
  }
}

TEST(ImageModel, a_pass_of_sdxl_multiplies_what_profilers_count) {
  // 2.99 T multiply-adds of one pass at 1024 x 1024, as module profilers count: without the products inside attention.
  double sum = 0;
  for (const ImageKernel& kernel : denoising_kernels(shipped("sdxl"), {}, Scheme::bf16)) {
    const bool multiplies = std::holds_alternative<GemmShape>(kernel.shape);
    if (multiplies) sum += flops({kernel});
  }
  EXPECT_NEAR(sum / 2, 5.98e12, 0.01 * 5.98e12);
}

TEST(ImageModel, work_grows_with_pictures_in_proportion_and_with_pixels_at_least) {
  for (const char* name : {"flux.1-dev", "sd3-medium", "sdxl"}) {
    const ImageModel model = shipped(name);
    const double one = flops(denoising_kernels(model, {}, Scheme::bf16));
    EXPECT_NEAR(flops(denoising_kernels(model, {.images = 4}, Scheme::bf16)), 4 * one, 1e-6 * one) << name;
    const double small = flops(denoising_kernels(model, {.height = 512, .width = 512}, Scheme::bf16));
    EXPECT_GT(one, 3 * small) << name;  // the text's part does not grow
    const double decoded = flops(decoding_kernels(model, {}));
    EXPECT_GT(decoded, 4 * flops(decoding_kernels(model, {.height = 512, .width = 512}))) << name;
  }
}

TEST(ImageModel, sides_that_no_token_fits_are_refused) {
  EXPECT_THROW(denoising_kernels(shipped("sdxl"), {.height = 1000}, Scheme::bf16), InputError);
  EXPECT_THROW(denoising_kernels(shipped("flux.1-dev"), {.width = 8}, Scheme::bf16), InputError);
}

TEST(ImageModel, wrong_files_are_refused) {
  const auto refused = [](const std::string& text) { EXPECT_THROW(parse_image_model(text, "x"), InputError) << text; };
  const std::string start = R"({"name": "x", "title": "x", "source": "x", "text_tokens": 77, "guidance_passes": 2,
    "usual_steps": 30, "latent_side": 1, "decoder": {"channels": [128]})";
  refused(start + "}");
  refused(start + R"(, "transformer": {"hidden": 100, "heads": 3, "joint_layers": 1, "single_layers": 0}})");
  refused(start + R"(, "unet": {"channels": [64, 128], "transformer_layers": [1]}})");
  refused(start + R"(, "unet": {"channels": [100], "transformer_layers": [1]}})");
  const std::string unet = R"(, "unet": {"channels": [64], "transformer_layers": [1]}})";
  EXPECT_NO_THROW(parse_image_model(start + unet, "x"));
  const std::string too_few = "\"latent_side\": 8";  // of a decoder with one level, which enlarges nothing
  refused(std::string(start).replace(start.find("\"latent_side\": 1"), too_few.size(), too_few) + unet);
}

TEST(ImageEstimate, a_faster_gpu_and_fewer_steps_take_less) {
  const Library library(data, {});
  const ImageModel model = shipped("sdxl");
  const auto seconds = [&](const std::string& device, int64_t steps) {
    return estimate_image({.model = model, .steps = steps}, library.predictor(device), {}).seconds;
  };
  const Estimate base = seconds("a100_sxm", 30);
  EXPECT_LT(base.low, base.value);
  EXPECT_GT(base.high, base.value);
  EXPECT_LT(seconds("h100_sxm", 30).value, base.value);
  EXPECT_LT(seconds("a100_sxm", 15).value, base.value);
  EXPECT_GT(seconds("a100_sxm", 15).value, base.value / 2);  // pixels are decoded once
}

TEST(ImageEstimate, long_runs_are_held_to_the_power_limit) {
  const Library library(data, {});
  const KernelPredictor predictor = library.predictor("h200_sxm");
  const ImageSetup setup{.model = shipped("flux.1-dev"), .steps = 28};
  const ImageEstimate held = estimate_image(setup, predictor, library.power_model(predictor.device()));
  const ImageEstimate cool = estimate_image(setup, predictor, {});
  EXPECT_EQ(held.step.burst_seconds.value, cool.seconds.value > 0 ? cool.step.seconds.value : 0);
  EXPECT_GT(held.step.seconds.value, 1.02 * cool.step.seconds.value);
  EXPECT_LE(held.step.power->watts.value, 700 * 1.01);
  EXPECT_FALSE(cool.joules);
}

TEST(ImageEstimate, memory_is_that_of_weights_text_encoders_and_the_largest_layer) {
  const Library library(data, {});
  const Device device = library.predictor("h200_sxm").device();
  const ImageMemory one = image_memory({.model = shipped("flux.1-dev")}, device);
  EXPECT_NEAR(one.step.weights, 23.8e9, 0.3e9);
  EXPECT_NEAR(one.text_encoders, 9.8e9, 0.1e9);
  const ImageMemory four = image_memory({.model = shipped("flux.1-dev"), .size = {.images = 4}}, device);
  EXPECT_NEAR(four.activations(), 4 * one.activations(), 1e-6 * four.activations());
  const ImageMemory narrow = image_memory({.model = shipped("flux.1-dev"), .scheme = Scheme::fp8}, device);
  EXPECT_NEAR(narrow.step.weights, one.step.weights / 2, 0.01 * one.step.weights);
}

TEST(ImageEstimate, formats_that_a_device_lacks_are_multiplied_in_bf16) {
  const Library library(data, {});
  const auto scheme_on = [&](const char* device) {
    return run_image_on(Scheme::fp8, library.predictor(device).device());
  };
  EXPECT_EQ(scheme_on("h200_sxm"), Scheme::fp8);
  EXPECT_NE(scheme_on("a100_sxm"), Scheme::fp8);
  EXPECT_EQ(facts(scheme_on("a100_sxm")).math, DType::bf16);
}

}  // namespace foretoken::image_model_test
