// Passes of a network that turns tokens or patches into vectors: a text encoder, a vision encoder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/estimate.h"
#include "compose/stack.h"
#include "library/device_models.h"
#include "model/model.h"
#include "model/vision.h"
#include "serving/stages/stage.h"

namespace foretoken {

// What runs them: one device, nothing cut.
struct EncoderMachine {
  DeviceModels models;
  Stack stack;
};

// Keeps the time of every shape it was asked for.
class EncoderPasses {
 public:
  EncoderPasses(Model model, EncoderMachine machine) : model_(std::move(model)), machine_(std::move(machine)) {}

  // `sequences` of so many tokens each in one pass, without a head.
  const Estimate& seconds(int64_t sequences, int64_t tokens);

 private:
  Model model_;
  EncoderMachine machine_;
  std::map<std::pair<int64_t, int64_t>, Estimate> known_;
};

// The network of a vision encoder on pictures.
class PictureEncoder {
 public:
  PictureEncoder(const VisionEncoder& encoder, const EncoderMachine& machine);

  // Pictures of so many patches each: those of one size in one pass.
  Estimate seconds(std::span<const int64_t> patches);

 private:
  EncoderPasses blocks_, projector_;
  std::optional<EncoderPasses> windows_;
  int64_t attended_;  // VisionEncoder::attended_patches
  int64_t window_patches_, patches_of_token_;
};

// Each request brings `sequences` of `tokens` each: a question to embed, passages to score.
std::unique_ptr<StageTimes> text_encoder_stage(std::shared_ptr<EncoderPasses> passes, int64_t sequences,
                                               int64_t tokens);

// Encodes the pictures of requests, so that the engine need not: workers of their own (encode-prefill
// disaggregation). Requests without pictures pass by.
std::unique_ptr<StageTimes> picture_stage(std::shared_ptr<PictureEncoder> encoder);

}  // namespace foretoken
