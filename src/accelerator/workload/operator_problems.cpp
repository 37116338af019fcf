#include "accelerator/workload/operator_problems.h"

#include <algorithm>
#include <cmath>

#include "model/work.h"

namespace foretoken {
namespace {

void add_gemm(std::vector<CountedProblem>& problems, const GemmSize& size, double count = 1) {
  problems.push_back({.problem = gemm_problem(size), .count = count});
}

void add_attention(std::vector<CountedProblem>& problems, const AttentionShape& shape) {
  const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  const int64_t queries = shape.q_len * (shape.heads / std::max<int64_t>(shape.kv_heads, 1));
  const int64_t batch = shape.batch * shape.kv_heads;
  const int64_t keys = shape.window > 0 ? std::min(shape.window + shape.q_len - 1, shape.kv_len) : shape.kv_len;
  add_gemm(problems, {.m = queries, .n = keys, .k = shape.head_dim, .batch = batch});
  add_gemm(problems, {.m = queries, .n = value_dim, .k = keys, .batch = batch});
}

void add_latent_attention(std::vector<CountedProblem>& problems, const LatentAttentionShape& shape) {
  const int64_t keys = shape.top_k > 0 ? std::min(shape.top_k, shape.kv_len) : shape.kv_len;
  // Decode works on the latent, which all heads share; prefill on keys and values of each head.
  const bool decodes = shape.phase == AttentionPhase::decode;
  const int64_t rows = decodes ? shape.q_len * shape.heads : shape.q_len;
  const int64_t batch = decodes ? shape.batch : shape.batch * shape.heads;
  const int64_t key_dim = (decodes ? shape.latent_dim : shape.nope_dim) + shape.rope_dim;
  const int64_t value_dim = decodes ? shape.latent_dim : shape.value_dim;
  add_gemm(problems, {.m = rows, .n = keys, .k = key_dim, .batch = batch});
  add_gemm(problems, {.m = rows, .n = value_dim, .k = keys, .batch = batch});
}

void add_experts(std::vector<CountedProblem>& problems, const MoeShape& shape) {
  const ExpertLoad load = expert_load(shape);
  if (load.active_experts <= 0) return;
  const auto tokens = std::max<int64_t>(1, std::llround(load.pairs / load.active_experts));
  const int64_t width = std::max<int64_t>(1, shape.inter / shape.tp);
  add_gemm(problems, {.m = tokens, .n = shape.gated ? 2 * width : width, .k = shape.hidden}, load.active_experts);
  add_gemm(problems, {.m = tokens, .n = shape.hidden, .k = width}, load.active_experts);
}

void add_convolution(std::vector<CountedProblem>& problems, const ConvShape& shape) {
  const auto side = [&](int64_t size, int64_t kernel) {
    return convolved_size(size, kernel, shape.stride, shape.padding, shape.dilation);
  };
  problems.push_back({.problem = convolution_problem({.batch = shape.batch,
                                                      .in_channels = shape.in_channels,
                                                      .out_channels = shape.out_channels,
                                                      .out_width = side(shape.width, shape.kernel_width),
                                                      .out_height = side(shape.height, shape.kernel_height),
                                                      .kernel_width = shape.kernel_width,
                                                      .kernel_height = shape.kernel_height,
                                                      .stride_width = shape.stride,
                                                      .stride_height = shape.stride,
                                                      .dilation_width = shape.dilation,
                                                      .dilation_height = shape.dilation,
                                                      .groups = shape.groups})});
}

// Masks, the backward pass and rounded token counts change how much is multiplied, not its form.
void scale_to_work(std::vector<CountedProblem>& problems, const KernelShape& shape) {
  double flops = 0;
  for (const CountedProblem& own : problems) flops += 2 * operations(own.problem) * own.count;
  if (flops <= 0) return;
  const double share = count_work(shape).flops.value() / flops;
  for (CountedProblem& own : problems) own.count *= share;
}

double bits_of(DType type) {
  return 8 * bytes_per_element(type);
}

TensorBits scheme_bits(Scheme scheme) {
  const SchemeFacts& own = facts(scheme);
  return {.input = 8 * own.activation_bytes, .weight = 8 * own.weight_bytes, .result = bits_of(own.result)};
}

}  // namespace

TensorBits tensor_bits(const KernelShape& shape) {
  return std::visit(
      [](const auto& own) -> TensorBits {
        if constexpr (requires { own.scheme; }) {
          return scheme_bits(own.scheme);
        } else if constexpr (requires { own.kv_dtype; }) {
          return {.input = bits_of(own.dtype), .weight = bits_of(own.kv_dtype), .result = bits_of(own.dtype)};
        } else {
          return {};
        }
      },
      shape);
}

void set_bits(Problem& problem, const TensorBits& bits, int multiplier_bits, int sum_bits) {
  for (ProblemTensor& tensor : problem.tensors) {
    if (tensor.written) {
      tensor.bits = bits.result;
      tensor.sum_bits = std::max<double>(sum_bits, bits.result);
      continue;
    }
    tensor.outside_bits = tensor.name == "B" || tensor.name == "Weights" ? bits.weight : bits.input;
    tensor.bits = std::min<double>(tensor.outside_bits, multiplier_bits);
  }
}

double attention_scores(const KernelShape& shape, std::span<const CountedProblem> problems) {
  const bool attends = std::holds_alternative<AttentionShape>(shape) ||
                       std::holds_alternative<MixedAttentionShape>(shape) ||
                       std::holds_alternative<LatentAttentionShape>(shape);
  if (!attends) return 0;
  double scores = 0;
  for (size_t i = 0; i < problems.size(); i += 2) {  // each queries by keys, then scores by values
    const Problem& product = problems[i].problem;
    scores += problems[i].count * tensor_words(product.tensors.back(), product);
  }
  return scores;
}

std::vector<CountedProblem> operator_problems(const KernelShape& shape) {
  std::vector<CountedProblem> problems;
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    add_gemm(problems, {.m = gemm->m, .n = gemm->n, .k = gemm->k, .batch = gemm->batch});
    return problems;
  }
  if (const auto* conv = std::get_if<ConvShape>(&shape)) {
    add_convolution(problems, *conv);
    return problems;
  }
  if (const auto* mixed = std::get_if<MixedAttentionShape>(&shape)) {
    const AttentionParts parts = equal_parts(*mixed);
    for (const AttentionShape& part : parts.all()) {
      const std::vector<CountedProblem> own = operator_problems(part);
      problems.insert(problems.end(), own.begin(), own.end());
    }
    return problems;
  }
  if (const auto* projection = std::get_if<LatentProjectionShape>(&shape)) {
    const int64_t in = projection->post ? projection->latent_dim : projection->head_dim;
    const int64_t out = projection->post ? projection->head_dim : projection->latent_dim;
    add_gemm(problems, {.m = projection->tokens, .n = out, .k = in, .batch = projection->heads});
  } else if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    add_attention(problems, *attention);
  } else if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) {
    add_latent_attention(problems, *latent);
  } else if (const auto* experts = std::get_if<MoeShape>(&shape)) {
    add_experts(problems, *experts);
  }
  scale_to_work(problems, shape);
  return problems;
}

}  // namespace foretoken
