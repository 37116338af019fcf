// Linear attention: gated delta net, KDA, Mamba-2, lightning attention; the short convolution or the recurrence.
#include "base/text.h"
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {
namespace {

constexpr double recurrence = 0, convolution = 1;

KernelParameter stage_parameter() {
  KernelParameter parameter = choice_parameter(
      "kernel",
      "which part: recurrence, convolution, or an implementation's name (causal_conv1d... is the convolution)",
      {"recurrence", "convolution"}, "recurrence");
  parameter.parse = [](std::string_view text) -> std::optional<double> {
    return starts_with_ignoring_case(text, "causal_conv1d") ? convolution : recurrence;
  };
  return parameter;
}

KernelParameter phase_parameter() {
  return choice_parameter("phase", "prefill: whole sequences; decode: one token each", {"prefill", "decode"},
                          std::nullopt);
}

std::vector<KernelParameter> delta_parameters() {
  return {stage_parameter(),
          phase_parameter(),
          size_parameter("batch", "sequences", "8"),
          size_parameter("seq_len", "new tokens of each sequence", "1024"),
          size_parameter_or("d_conv", "taps of the short convolution", "4"),
          size_parameter("k_heads", "key heads", "16"),
          size_parameter_or("k_dim", "size of a key head", "128"),
          size_parameter("v_heads", "value heads", "32"),
          size_parameter_or("v_dim", "size of a value head", "128"),
          size_parameter_or("chunk", "tokens multiplied at once in prefill", "64")};
}

KernelShape delta_shape(KernelValues v, LinearAttentionKind kind) {
  return LinearAttentionShape{
      .kind = kind,
      .stage = v[0] == convolution ? LinearAttentionStage::convolution : LinearAttentionStage::recurrence,
      .decode = v[1] == 1,
      .batch = count(v[2]),
      .seq_len = count(v[3]),
      .key_heads = count(v[5]),
      .key_dim = count(v[6]),
      .value_heads = count(v[7]),
      .value_dim = count(v[8]),
      .conv_kernel = count(v[4]),
      .chunk = count(v[9])};
}

}  // namespace

KernelFamily linattn_gdn_family() {
  return {.name = "linattn_gdn",
          .summary = "gated delta net (Qwen3-Next, Qwen3.5): short convolution or recurrence",
          .parameters = delta_parameters(),
          .shape = [](KernelValues v) { return delta_shape(v, LinearAttentionKind::gdn); }};
}

KernelFamily linattn_kda_family() {
  return {.name = "linattn_kda",
          .summary = "Kimi delta attention: a gate per channel",
          .parameters = delta_parameters(),
          .shape = [](KernelValues v) { return delta_shape(v, LinearAttentionKind::kda); }};
}

KernelFamily linattn_lightning_family() {
  return {.name = "linattn_lightning",
          .summary = "lightning attention (MiniMax-Text-01): linear attention with a fixed decay",
          .parameters = delta_parameters(),
          .shape = [](KernelValues v) { return delta_shape(v, LinearAttentionKind::lightning); }};
}

KernelFamily linattn_mamba2_family() {
  return {.name = "linattn_mamba2",
          .summary = "Mamba-2: short convolution or state-space recurrence",
          .parameters = {stage_parameter(), phase_parameter(), size_parameter("batch", "sequences", "8"),
                         size_parameter("seq_len", "new tokens of each sequence", "1024"),
                         size_parameter_or("d_state", "size of the state per channel", "128"),
                         size_parameter_or("d_conv", "taps of the short convolution", "4"),
                         size_parameter("heads", "heads", "128"), size_parameter_or("head_dim", "size of a head", "64"),
                         size_parameter_or("groups", "groups that share B and C", "8"),
                         size_parameter_or("chunk", "tokens multiplied at once in prefill", "128")},
          .shape = [](KernelValues v) -> KernelShape {
            return LinearAttentionShape{
                .kind = LinearAttentionKind::mamba2,
                .stage = v[0] == convolution ? LinearAttentionStage::convolution : LinearAttentionStage::recurrence,
                .decode = v[1] == 1,
                .batch = count(v[2]),
                .seq_len = count(v[3]),
                .key_heads = count(v[8]),
                .key_dim = count(v[4]),
                .value_heads = count(v[6]),
                .value_dim = count(v[7]),
                .conv_kernel = count(v[5]),
                .chunk = count(v[9])};
          }};
}

}  // namespace foretoken
