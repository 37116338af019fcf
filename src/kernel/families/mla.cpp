// Multi-head latent attention: the attention core, and the absorb multiplies around it.
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {
namespace mla {
namespace {

enum Parameter { attn_dtype, kv_dtype, batch, heads, q_len, kv_len, latent_dim, rope_dim, nope_dim, value_dim, top_k };

std::vector<KernelParameter> parameters(bool decode) {
  return {dtype_parameter("attn_dtype", "of queries and output; the multiplies too, unless decode reads an fp8 cache",
                          DType::bf16),
          dtype_parameter("kv_dtype", "how the latent cache is stored", DType::bf16),
          size_parameter("batch", "sequences", "8"),
          size_parameter("heads", "heads on this device", "16"),
          decode ? size_parameter_or("q_len", "new tokens of each sequence", "1")
                 : size_parameter("q_len", "new tokens of each sequence", "2048"),
          size_parameter("kv_len", "keys of each sequence, the new tokens among them", decode ? "4096" : "2048"),
          size_parameter_or("latent_dim", "latent of a cached token", "512"),
          size_parameter_or("rope_dim", "rotary part of a cached token", "64", 0),
          size_parameter_or("nope_dim", "part of a head without rotary embedding", "128"),
          size_parameter_or("value_dim", "size of a value head", "128"),
          size_parameter_or("top_k", "keys each query reads in sparse attention; 0 = all", "0", 0)};
}

KernelShape shape(KernelValues v, AttentionPhase phase) {
  return LatentAttentionShape{.phase = phase,
                              .batch = count(v[batch]),
                              .heads = count(v[heads]),
                              .q_len = count(v[q_len]),
                              .kv_len = count(v[kv_len]),
                              .latent_dim = count(v[latent_dim]),
                              .rope_dim = count(v[rope_dim]),
                              .nope_dim = count(v[nope_dim]),
                              .value_dim = count(v[value_dim]),
                              .top_k = count(v[top_k]),
                              .dtype = dtype(v[attn_dtype]),
                              .kv_dtype = dtype(v[kv_dtype])};
}

std::optional<Misfit> misfit(KernelValues v) {
  if (v[kv_len] < v[q_len]) return Misfit{kv_len, "at least q_len: the new tokens are among the keys"};
  return std::nullopt;
}

}  // namespace
}  // namespace mla

KernelFamily mla_prefill_family() {
  return {.name = "mla_prefill",
          .summary = "latent attention of prompts, keys and values expanded per head",
          .parameters = mla::parameters(false),
          .shape = [](KernelValues v) { return mla::shape(v, AttentionPhase::prefill); },
          .misfit = mla::misfit};
}

KernelFamily mla_decode_family() {
  return {.name = "mla_decode",
          .summary = "latent attention of new tokens over the cached latents (absorbed form)",
          .parameters = mla::parameters(true),
          .shape = [](KernelValues v) { return mla::shape(v, AttentionPhase::decode); },
          .misfit = mla::misfit};
}

KernelFamily mla_bmm_family() {
  return {
      .name = "mla_bmm",
      .summary = "the absorb multiplies around latent decode, one per head",
      .parameters = {variant_parameter(),
                     choice_parameter("op", "pre: head to latent; post: latent to head", {"pre", "post"}, std::nullopt),
                     scheme_parameter("dtype", "how weights and activations are stored and multiplied"),
                     size_parameter("tokens", "rows", "128"), size_parameter("heads", "heads on this device", "16"),
                     size_parameter_or("latent_dim", "latent of a cached token", "512"),
                     size_parameter_or("head_dim", "size of a head", "128")},
      .shape = [](KernelValues v) -> KernelShape {
        return LatentProjectionShape{.post = v[1] == 1,
                                     .tokens = count(v[3]),
                                     .heads = count(v[4]),
                                     .latent_dim = count(v[5]),
                                     .head_dim = count(v[6]),
                                     .scheme = scheme(v[2])};
      }};
}

}  // namespace foretoken
