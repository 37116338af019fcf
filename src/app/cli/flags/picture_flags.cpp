#include "app/cli/flags/picture_flags.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/stages/picture_steps.h"

namespace foretoken {
namespace {

constexpr const char* pictures_heading = "Load: images (--vision-encoder)";
constexpr const char* sizes_flag = "--image-sizes";

// "1280x720"
ImageInput picture_of(const VisionEncoder& encoder, const std::string& text) {
  const size_t cross = std::min(text.find('x'), text.size());
  const auto side = [&](const std::string& part) {
    const std::optional<double> number = parse_number(part);
    const bool whole = number && *number >= 1 && *number <= 1e6 && *number == std::floor(*number);
    if (!whole) {
      throw InputError({.source = sizes_flag,
                        .value = printable(text),
                        .expected = "width x height in pixels, for example 1280x720,512x512"});
    }
    return static_cast<int64_t>(*number);
  };
  const int64_t width = side(text.substr(0, cross)), height = side(text.substr(std::min(cross + 1, text.size())));
  const PictureTokens picture = picture_tokens(encoder, width, height, field_name(sizes_flag));
  return {.patches = picture.patches, .tokens = picture.tokens};
}

}  // namespace

void PictureFlags::declare(Options& options) {
  constexpr Range<int64_t> counts{.least = 1, .most = 100'000};
  options.heading(pictures_heading);
  options.text(
      "--vision-encoder", encoder,
      "Add images to the prompts, encoded by the vision tower of this model: a name (data/vision) or a config.json");
  options.integer("--images", per_request, {.least = 1, .most = 1000}, "Images per request that has images");
  options.number("--image-share", share, {.least = 0, .most = 1}, "Share of requests that have images");
  options.list(sizes_flag, sizes, "Image sizes in pixels, each equally likely [1024x1024]");
  options.integer("--encoder-servers", encoder_servers, {.least = 0, .most = 100'000},
                  "Number of separate GPUs that only encode images; 0 = the engines encode images themselves");
  options.text("--encoder-device", encoder_device, "GPU that encodes images [same as --device]");
  options.integer("--encoder-batch", encoder_batch, counts, "Requests that an image encoder processes in one batch");
}

void PictureFlags::check_use(const Options& options, bool conversations) const {
  if (!given()) {
    options.refuse_without("--vision-encoder", {}, {pictures_heading});
    return;
  }
  if (conversations) options.refuse({"--vision-encoder"}, {}, "conversations");
  if (encoder_servers == 0) options.refuse_without("--encoder-servers", {"--encoder-device", "--encoder-batch"});
}

VisionEncoder PictureFlags::read_encoder(const Library& library) const {
  return find_vision_encoder(library.directory() / "vision", encoder);
}

LoadMaker PictureFlags::changed(LoadMaker load, const Library& library) const {
  if (!given()) return load;
  const VisionEncoder read = read_encoder(library);
  ImageSettings settings{.sizes = {}, .per_request = per_request, .share = share};
  for (const std::string& size : sizes) settings.sizes.push_back(picture_of(read, size));
  if (sizes.empty()) settings.sizes.push_back(picture_of(read, "1024x1024"));
  return [load = std::move(load), settings](uint64_t seed) { return with_images(load(seed), settings, seed); };
}

void PictureFlags::add_stage(StageList& stages, const std::string& device, const Library& library) const {
  if (!given() || encoder_servers == 0) return;
  const EncoderMachine machine{.models = library.device_models(encoder_device.empty() ? device : encoder_device, {}),
                               .stack = stacks_of(library).stack("torch-graph")};
  stages.add("encode", encoder_servers, encoder_batch,
             picture_stage(std::make_shared<PictureEncoder>(read_encoder(library), machine)));
}

void PictureFlags::add_to_engines(std::vector<ReplicaGroup>& groups, const Library& library) const {
  if (!given() || encoder_servers > 0) return;
  const VisionEncoder read = read_encoder(library);
  for (ReplicaGroup& group : groups) {
    const EncoderMachine machine{.models = group.models, .stack = stacks_of(library).stack("torch-graph")};
    group.pictures = std::make_unique<PictureEncoder>(read, machine);
    group.picture_times = picture_steps(*group.config.times, *group.pictures);
    group.config.times = group.picture_times.get();
    const double block_bytes = group.memory.kv_pool.value / group.memory.blocks.value;
    SchedulerOptions& options = group.config.options;
    options.num_gpu_blocks -= static_cast<int64_t>(std::ceil(read.weight_bytes() / block_bytes));
    const int64_t needed = group.memory.flags.max_model_len / options.block_size + 2;
    if (options.num_gpu_blocks < needed) {
      throw InputError({.source = "KV cache",
                        .value = fmt::format("{} blocks left after the vision encoder", options.num_gpu_blocks),
                        .expected = fmt::format("{} blocks, enough for one sequence of --max-model-len", needed)});
    }
  }
}

}  // namespace foretoken
