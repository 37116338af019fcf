// FLOPs that one token of a training step is said to cost. Publications count differently, by up to a third; every MFU
// therefore names its convention and its peak.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.h"
#include "hardware/device.h"
#include "model/model.h"
#include "model/part_memory.h"

namespace foretoken {

struct FlopQuestion {
  int64_t sequence_length = 1;
  double attended_length = 0;        // of packed sequences sum(s_i^2) / sum(s_i); 0 = sequence_length
  double recomputed = 0;             // share of the layers whose forward runs again in the backward pass
  double recomputed_multiplies = 0;  // share of the layers' multiplies that does, without their attention cores
  LayerModules recomputed_modules;   // whose multiplies do in every layer
  double expert_share = 1;           // of the tokens sent to routed experts that these compute; the rest is dropped
  LoraAdapter lora;                  // what is trained in place of the weights; rank 0 = the weights
};

// Of one token; a multiply-add counts two. Draft layers (multi-token prediction) are trained and count.
struct TokenFlops {
  // Forward passes.
  double layers = 0;            // multiplies with the layers' weights: 2 P, of experts the chosen ones, and recurrences
  double head = 0;              // 2 hidden vocabulary
  double full_attention = 0;    // scores and values over every key in reach: 4 A
  double causal_attention = 0;  // over those a causal mask leaves, half of them: 2 A
  // Forward, backward and what is computed again, as kernels run them: flash attention's backward is 2.5 forwards,
  // frozen weights have no gradient. A selective recomputation is inside the 2.5.
  double executed = 0;
  double parameters = 0;  // of the whole model, embeddings too
};
TokenFlops token_flops(const Model& model, const FlopQuestion& question);

struct FlopConvention {
  std::string_view name, summary;
  double (*per_token)(const TokenFlops&);
};
std::span<const FlopConvention> flop_conventions();
const FlopConvention* find_flop_convention(std::string_view name);   // null for a name that is not one
const FlopConvention& flop_convention_named(std::string_view name);  // InputError that suggests the nearest

// How much of the peak of one device is used.
struct FlopUse {
  std::string_view convention;
  DType peak_type = DType::bf16;  // whose peak it is: the next wider type where the device has none
  FlopsPerSecond peak;
  FlopsPerSecond model_rate;  // of the convention
  double mfu = 0;             // model_rate over peak
  double hfu = 0;             // executed FLOPs over peak
};
// InputError for a device without any such peak.
FlopUse flop_use(const FlopConvention& convention, const TokenFlops& flops, double tokens_per_second_and_device,
                 const Device& device, DType peak_type);

}  // namespace foretoken
