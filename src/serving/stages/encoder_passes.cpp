#include "serving/stages/encoder_passes.h"

#include <vector>

#include "compose/step_estimate.h"

namespace foretoken {
namespace {

class TextEncoderStage final : public StageTimes {
 public:
  TextEncoderStage(std::shared_ptr<EncoderPasses> passes, int64_t sequences, int64_t tokens)
      : passes_(std::move(passes)), sequences_(sequences), tokens_(tokens) {}
  Estimate batch_seconds(std::span<const Request> batch) override {
    return passes_->seconds(static_cast<int64_t>(batch.size()) * sequences_, tokens_);
  }

 private:
  std::shared_ptr<EncoderPasses> passes_;
  int64_t sequences_, tokens_;
};

class PictureStage final : public StageTimes {
 public:
  explicit PictureStage(std::shared_ptr<PictureEncoder> encoder) : encoder_(std::move(encoder)) {}
  bool serves(const Request& request) const override { return !request.images.empty(); }
  Estimate batch_seconds(std::span<const Request> batch) override {
    std::vector<int64_t> patches;
    for (const Request& request : batch) {
      for (const ImageInput& image : request.images) patches.push_back(image.patches);
    }
    return encoder_->seconds(patches);
  }
  void finish(Request& request) const override { request.images.clear(); }

 private:
  std::shared_ptr<PictureEncoder> encoder_;
};

}  // namespace

const Estimate& EncoderPasses::seconds(int64_t sequences, int64_t tokens) {
  const std::pair key(sequences, tokens);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const StepRequest request{
      .phase = StepPhase::prefill, .batch = sequences, .input_len = tokens, .logits = Logits::none};
  return known_.emplace(key, estimate_step(model_, request, {}, machine_.models.kernels, machine_.stack).seconds)
      .first->second;
}

PictureEncoder::PictureEncoder(const VisionEncoder& encoder, const EncoderMachine& machine)
    : blocks_(encoder.blocks, machine),
      projector_(encoder.projector, machine),
      attended_(encoder.attended_patches()),
      window_patches_(encoder.window_patches),
      patches_of_token_(encoder.merge_side * encoder.merge_side) {
  if (encoder.window_blocks) windows_.emplace(*encoder.window_blocks, machine);
}

Estimate PictureEncoder::seconds(std::span<const int64_t> patches) {
  std::map<int64_t, int64_t> pictures;  // by patches
  for (const int64_t count : patches) ++pictures[count];
  std::vector<Estimate> parts;
  for (const auto& [size, count] : pictures) {
    const int64_t sequence = attended_ > 0 ? attended_ : size;
    parts.push_back(blocks_.seconds(count * (size / sequence), sequence));
    if (windows_) {
      const int64_t windows = (size + window_patches_ - 1) / window_patches_;
      parts.push_back(windows_->seconds(count * windows, window_patches_));
    }
    parts.push_back(projector_.seconds(1, count * size / patches_of_token_));
  }
  return sum_of_correlated(parts);
}

std::unique_ptr<StageTimes> text_encoder_stage(std::shared_ptr<EncoderPasses> passes, int64_t sequences,
                                               int64_t tokens) {
  return std::make_unique<TextEncoderStage>(std::move(passes), sequences, tokens);
}

std::unique_ptr<StageTimes> picture_stage(std::shared_ptr<PictureEncoder> encoder) {
  return std::make_unique<PictureStage>(std::move(encoder));
}

}  // namespace foretoken
