#include "model/work.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// Counts are doubles from the start: a product of four sizes can leave the range of 64-bit integers.
double number(int64_t count) {
  return static_cast<double>(count);
}

double bytes_of(DType type, double elements) {
  return bytes_per_element(type) * elements;
}

// An activation as it lies in memory before the layer: schemes that quantize it still have to read it there.
double stored_activation_bytes(const SchemeFacts& scheme) {
  return scheme.quantizes_activations ? bytes_per_element(scheme.result) : scheme.activation_bytes;
}

// sum over t = 1..count of min(t, cap)
double capped_triangle(double count, double cap) {
  if (count <= 0 || cap <= 0) return 0;
  if (count <= cap) return count * (count + 1) / 2;
  return cap * (cap + 1) / 2 + (count - cap) * cap;
}

// Pairs of q_len queries that end at key kv_len; each sees at most `reach` keys back to and including its own.
double causal_pairs(int64_t q_len, int64_t kv_len, double reach) {
  const double last = number(kv_len);
  const double before = number(std::max<int64_t>(0, kv_len - q_len));
  return capped_triangle(last, reach) - capped_triangle(before, reach);
}

double reach_of(int64_t window, int64_t kv_len) {
  return window > 0 ? number(std::min(window, kv_len)) : number(kv_len);
}

// How much more than the forward pass a backward pass multiplies: flash attention recomputes Q K^T and needs dP, dQ,
// dK, dV, five products against two (Dao, FlashAttention-2, section 3.1).
constexpr double attention_backward = 2.5;

struct Counter {
  // 2 b m n k; x and W read once, y written once.
  Work operator()(const GemmShape& s) const {
    const SchemeFacts& scheme = facts(s.scheme);
    const double batch = number(s.batch), m = number(s.m), n = number(s.n), k = number(s.k);
    return {.flops = Flops(2 * batch * m * n * k),
            .math = scheme.math,
            .weights_read = Bytes(batch * n * k * scheme.weight_bytes),
            .activations_read = Bytes(batch * m * k * stored_activation_bytes(scheme)),
            .written = Bytes(bytes_of(scheme.result, batch * m * n))};
  }

  // 2 pairs heads (qk dim + v dim); Q, O and every key some query sees once. A kernel that fills the cache reads the
  // new K and V as they come and writes them in the type of the cache.
  Work operator()(const AttentionShape& s) const {
    const double batch = number(s.batch), heads = number(s.heads), kv_heads = number(s.kv_heads);
    const double qk = number(s.head_dim), v = number(s.value_dim > 0 ? s.value_dim : s.head_dim);
    const bool masked = s.causal && s.phase != AttentionPhase::encoder;
    const int64_t new_keys = s.writes_kv ? std::min(s.q_len, s.kv_len) : 0;
    int64_t seen = s.kv_len;
    if (s.window > 0 && masked) seen = std::min(s.kv_len, s.q_len + s.window - 1);

    const double per_key = batch * kv_heads * (qk + v);
    const double queries = bytes_of(s.dtype, batch * number(s.q_len) * heads * qk);
    const double outputs = bytes_of(s.dtype, batch * number(s.q_len) * heads * v);
    const double keys = per_key * (bytes_of(s.dtype, number(new_keys)) + bytes_of(s.kv_dtype, number(seen - new_keys)));
    Work work{.flops = Flops(2 * batch * heads * (qk + v) * attended_pairs(s)),
              .math = attention_math(s),
              .activations_read = Bytes(queries + keys),
              .written = Bytes(outputs + bytes_of(s.kv_dtype, per_key * number(new_keys)))};
    if (s.pass == Pass::backward) {  // reads Q, K, V, O, dO; writes dQ, dK, dV
      work.flops = work.flops * attention_backward;
      work.activations_read = Bytes(queries + keys + 2 * outputs);
      work.written = Bytes(queries + bytes_of(s.dtype, per_key * number(seen)));
    }
    return work;
  }

  Work operator()(const MixedAttentionShape& s) const {
    Work sum{.math = s.dtype};
    const AttentionParts parts = equal_parts(s);
    for (const AttentionShape& call : parts.all()) {
      const Work part = (*this)(call);
      sum.flops += part.flops;
      sum.math = part.math;
      sum.activations_read += part.activations_read;
      sum.written += part.written;
    }
    return sum;
  }

  Work operator()(const LatentAttentionShape& s) const {
    const double batch = number(s.batch), heads = number(s.heads), queries = number(s.q_len);
    const double reach = s.top_k > 0 ? number(s.top_k) : number(s.kv_len);
    const double pairs = batch * heads * causal_pairs(s.q_len, s.kv_len, reach);
    const double latent = number(s.latent_dim), rope = number(s.rope_dim), value = number(s.value_dim);
    Work work{.math = s.dtype};
    double read = 0, written = 0;
    if (s.phase == AttentionPhase::decode) {
      // Absorbed: scores over latent + rope, values over the latent; the cache is read once for all heads. With an fp8
      // cache the query is cast too: measured kernels beat the bf16 peak.
      const double keys = s.top_k > 0 ? std::min(number(s.kv_len), queries * reach) : number(s.kv_len);
      work.flops = Flops(2 * pairs * (latent + rope + latent));
      if (s.kv_dtype == DType::fp8) work.math = DType::fp8;
      read = bytes_of(s.dtype, batch * queries * heads * (latent + rope)) +
             bytes_of(s.kv_dtype, batch * keys * (latent + rope));
      written = bytes_of(s.dtype, batch * queries * heads * latent);
    } else {
      // Expanded: K and V per head, but the rotary part of K is shared by the heads.
      const double qk = number(s.nope_dim) + rope;
      work.flops = Flops(2 * pairs * (qk + value));
      read = bytes_of(
          s.dtype, batch * (queries * heads * qk + number(s.kv_len) * (heads * (number(s.nope_dim) + value) + rope)));
      written = bytes_of(s.dtype, batch * queries * heads * value);
    }
    if (s.pass == Pass::backward) {  // O and dO come in; the gradients of all that was read go out
      work.flops = work.flops * attention_backward;
      work.activations_read = Bytes(read + 2 * written);
      work.written = Bytes(read);
      return work;
    }
    work.activations_read = Bytes(read);
    work.written = Bytes(written);
    return work;
  }

  // One GEMM per head.
  Work operator()(const LatentProjectionShape& s) const {
    return (*this)(GemmShape{.m = s.tokens,
                             .n = s.post ? s.head_dim : s.latent_dim,
                             .k = s.post ? s.latent_dim : s.head_dim,
                             .batch = s.heads,
                             .scheme = s.scheme});
  }

  // 2 pairs hidden width per matrix (gated: 3, else 2); weights of the active experts once; a token comes in and goes
  // out once however many of the rank's experts it visits. What lies between the two multiplies may stay on chip.
  Work operator()(const MoeShape& s) const {
    const SchemeFacts& scheme = facts(s.scheme);
    const ExpertLoad load = expert_load(s);
    const double local_experts = std::max(1.0, number(s.experts) / number(s.ep));
    const double per_expert = number(s.hidden) * (number(s.inter) / number(s.tp)) * (s.gated ? 3 : 2);
    const double tokens = load.pairs / std::min(number(s.top_k), local_experts);
    Work work{.flops = Flops(2 * load.pairs * per_expert),
              .math = scheme.math,
              .weights_read = Bytes(load.active_experts * per_expert * scheme.weight_bytes),
              .activations_read = Bytes(tokens * number(s.hidden) * stored_activation_bytes(scheme)),
              .written = Bytes(bytes_of(scheme.result, tokens * number(s.hidden)))};
    if (s.pass == Pass::backward) {  // gradients of input and weights: two multiplies for each one forward
      work.flops = work.flops * 2;
      work.activations_read = work.activations_read + work.written;  // x and dy in, dx out
      work.written = work.written + Bytes(load.active_experts * per_expert * bytes_per_element(scheme.result));
    }
    return work;
  }

  // A scale and a cast per element.
  Work operator()(const QuantizeShape& s) const {
    const double elements = number(s.m) * number(s.k);
    return {.flops = Flops(elements),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(DType::bf16, elements)),
            .written = Bytes(bytes_of(DType::fp8, elements))};
  }

  Work operator()(const LinearAttentionShape& s) const {
    return s.stage == LinearAttentionStage::convolution ? short_convolution(s) : recurrence(s);
  }

  // pre: the streams are read, projected to streams (streams + 2) mixing weights which Sinkhorn iterations normalise,
  // and mixed into one input. post: block output and streams come in, the new streams go out. `sites` of them per
  // layer.
  Work operator()(const HyperConnectionShape& s) const {
    const double streams = number(s.streams), hidden = number(s.hidden);
    const double calls = number(s.tokens) * number(s.sites);
    const double mixes = streams * (streams + 2);
    if (s.post) {
      return {.flops = Flops(2 * calls * hidden * streams * (streams + 1)),
              .math = DType::fp32,
              .activations_read =
                  Bytes(calls * (bytes_of(DType::bf16, hidden * (streams + 1)) + 4 * streams * (streams + 1))),
              .written = Bytes(calls * bytes_of(DType::bf16, hidden * streams))};
    }
    const double sinkhorn = 4 * number(s.iterations) * streams * streams;  // sum and divide, rows then columns
    return {.flops = Flops(calls * (2 * hidden * streams * (mixes + 2) + sinkhorn)),
            .math = DType::bf16,  // the projection runs on tensor units; bf16 bounds whichever type they take
            .weights_read = Bytes(4 * number(s.sites) * hidden * streams * mixes),
            .activations_read = Bytes(calls * bytes_of(DType::bf16, hidden * streams)),
            .written = Bytes(calls * (bytes_of(DType::bf16, hidden) + 4 * streams * (streams + 1)))};
  }

  // RMS: square, add, scale, weight (4 per element); LayerNorm also subtracts the mean and adds a bias (7); a fused
  // residual add is one more and a second tensor in and out. Backward about twice that.
  Work operator()(const NormShape& s) const {
    const double elements = number(s.rows) * number(s.width);
    const double tensor = bytes_of(s.dtype, elements);
    const double parameters = bytes_of(s.dtype, number(s.width) * (s.layer_norm ? 2 : 1));
    const double per_element = (s.layer_norm ? 7 : 4) + (s.adds_residual ? 1 : 0);
    if (s.pass == Pass::backward) {  // x and dy in (and the residual's gradient); dx and the parameters' gradients out
      return {.flops = Flops(2 * per_element * elements),
              .math = DType::fp32,
              .weights_read = Bytes(parameters),
              .activations_read = Bytes(tensor * (s.adds_residual ? 3 : 2)),
              .written = Bytes(tensor + parameters)};
    }
    const double tensors = s.adds_residual ? 2 : 1;
    return {.flops = Flops(per_element * elements),
            .math = DType::fp32,
            .weights_read = Bytes(parameters),
            .activations_read = Bytes(tensors * tensor),
            .written = Bytes(tensors * tensor)};
  }

  // Two elements turn with four multiplies and two adds; sine and cosine come from a table, one row per token.
  Work operator()(const RopeShape& s) const {
    const double turned = number(s.tokens) * number(s.heads + s.kv_heads) * number(s.rotary_dim);
    return {.flops = Flops(3 * turned),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, turned + number(s.tokens) * number(s.rotary_dim))),
            .written = Bytes(bytes_of(s.dtype, turned))};
  }

  // SiLU or GELU counted as four per element, the gate as one; backward twice that.
  Work operator()(const ActivationShape& s) const {
    const double elements = number(s.rows) * number(s.width);
    const double inputs = s.gated ? 2 : 1;
    const double flops = (s.gated ? 5 : 4) * elements;
    const bool backward = s.pass == Pass::backward;  // inputs and dy in, gradients of the inputs out
    return {.flops = Flops(backward ? 2 * flops : flops),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, elements * (backward ? inputs + 1 : inputs))),
            .written = Bytes(bytes_of(s.dtype, elements * (backward ? inputs : 1)))};
  }

  Work operator()(const ElementwiseShape& s) const {
    const double elements = number(s.elements);
    return {.flops = Flops(s.flops_per_element * elements),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, elements * number(s.inputs))),
            .written = Bytes(bytes_of(s.dtype, elements * number(s.outputs)))};
  }

  // Maximum, subtract, exponential, sum, divide.
  Work operator()(const SoftmaxShape& s) const {
    const double elements = number(s.rows) * number(s.width);
    return {.flops = Flops(5 * elements),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, elements)),
            .written = Bytes(bytes_of(s.dtype, elements))};
  }

  // A row of the table per token, and its 4-byte index; backward adds each row's gradient into the table's.
  Work operator()(const EmbeddingShape& s) const {
    const double rows = bytes_of(s.dtype, number(s.tokens) * number(s.width));
    const double indices = 4 * number(s.tokens);
    if (s.pass == Pass::backward) {
      return {.flops = Flops(number(s.tokens) * number(s.width)),
              .math = DType::fp32,
              .activations_read = Bytes(2 * rows + indices),
              .written = Bytes(rows)};
    }
    return {
        .math = DType::fp32, .weights_read = Bytes(rows), .activations_read = Bytes(indices), .written = Bytes(rows)};
  }

  Work operator()(const KvWriteShape& s) const {
    const double values = number(s.tokens) * number(s.values_per_token);
    return {.math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, values)),
            .written = Bytes(bytes_of(s.kv_dtype, values))};
  }

  // Arg-max: a comparison per logit. Top-k/top-p: a softmax (5) and a sort (log2 of the vocabulary) per logit.
  Work operator()(const SamplingShape& s) const {
    const double logits = number(s.rows) * number(s.vocabulary);
    const double per_logit = s.greedy ? 1 : 5 + portable_log2(std::max(2.0, number(s.vocabulary)));
    return {.flops = Flops(per_logit * logits),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, logits)),
            .written = Bytes(8 * number(s.rows))};
  }

  // 2 per output element and tap: an implicit GEMM with k = in_channels/groups kernel_height kernel_width.
  Work operator()(const ConvShape& s) const {
    const SchemeFacts& scheme = facts(s.scheme);
    const double taps = number(s.in_channels) / number(s.groups) * number(s.kernel_height) * number(s.kernel_width);
    const double outputs = number(s.batch) * number(s.out_channels) *
                           number(convolved_size(s.height, s.kernel_height, s.stride, s.padding, s.dilation)) *
                           number(convolved_size(s.width, s.kernel_width, s.stride, s.padding, s.dilation));
    const double inputs = number(s.batch) * number(s.in_channels) * number(s.height) * number(s.width);
    return {.flops = Flops(2 * outputs * taps),
            .math = scheme.math,
            .weights_read = Bytes(number(s.out_channels) * taps * scheme.weight_bytes),
            .activations_read = Bytes(inputs * stored_activation_bytes(scheme)),
            .written = Bytes(bytes_of(scheme.result, outputs))};
  }

  // One operation per element under the window.
  Work operator()(const PoolShape& s) const {
    const double planes = number(s.batch) * number(s.channels);
    const double outputs = planes * number(convolved_size(s.height, s.kernel, s.stride, 0, 1)) *
                           number(convolved_size(s.width, s.kernel, s.stride, 0, 1));
    return {.flops = Flops(outputs * number(s.kernel) * number(s.kernel)),
            .math = DType::fp32,
            .activations_read = Bytes(bytes_of(s.dtype, planes * number(s.height) * number(s.width))),
            .written = Bytes(bytes_of(s.dtype, outputs))};
  }

  // 2 per nonzero and feature, in fp32 whatever is stored. Column numbers are 4 bytes each, as are the starts of rows.
  // Dense rows that no nonzero touches are not read.
  Work operator()(const SparseShape& s) const {
    const double nonzeros = number(s.nonzeros), features = number(s.features);
    const double columns = touched_lines(number(s.columns), nonzeros, s.pattern);
    const double structure = 4 * nonzeros + 4 * (number(s.rows) + 1);
    const bool is_spmm = s.product == SparseProduct::spmm;
    const double rows = is_spmm ? 0 : touched_lines(number(s.rows), nonzeros, s.pattern);
    const double values = is_spmm ? nonzeros : 0;
    const double results = is_spmm ? number(s.rows) * features : nonzeros;
    return {.flops = Flops(2 * nonzeros * features),
            .math = DType::fp32,
            .activations_read = Bytes(structure + bytes_of(s.dtype, values + (columns + rows) * features)),
            .written = Bytes(bytes_of(s.dtype, results))};
  }

  Work operator()(const CollectiveShape&) const { return {}; }

 private:
  static DType attention_math(const AttentionShape& s) {
    if (s.math) return *s.math;
    return s.kv_dtype == DType::fp8 && s.phase != AttentionPhase::encoder ? DType::fp8 : s.dtype;
  }

  // Channels of q, k and v (mamba2: x, B and C), `conv_kernel` taps each and an activation; a cached window of the last
  // inputs is written (prefill), or read and written (decode).
  static Work short_convolution(const LinearAttentionShape& s) {
    const double channels = 2 * number(s.key_heads) * number(s.key_dim) + number(s.value_heads) * number(s.value_dim);
    const double elements = number(s.batch) * number(s.seq_len) * channels;
    const double window = bytes_of(s.dtype, number(s.batch) * channels * number(s.conv_kernel - 1));
    const double parameters = bytes_of(s.dtype, channels * number(s.conv_kernel));
    const double tensor = bytes_of(s.dtype, elements);
    const double flops = elements * (2 * number(s.conv_kernel) + 4);
    if (s.pass == Pass::backward) {  // x and dy in, dx and the taps' gradients out: two multiplies for each one forward
      return {.flops = Flops(2 * flops),
              .math = DType::fp32,
              .weights_read = Bytes(parameters),
              .activations_read = Bytes(2 * tensor),
              .written = Bytes(tensor + parameters)};
    }
    return {.flops = Flops(flops),
            .math = DType::fp32,
            .weights_read = Bytes(parameters),
            .activations_read = Bytes(tensor + (s.decode ? window : 0)),
            .written = Bytes(tensor + window)};
  }

  // FLOPs of one head over one chunk of c tokens with a state of d_k x d_v.
  static double chunk_flops(const LinearAttentionShape& s, double c) {
    const double key = number(s.key_dim), value = number(s.value_dim);
    const double scores = 2 * c * c * key, mix = 2 * c * c * value, state = 2 * c * key * value;
    switch (s.kind) {
      // Q K^T, its product with V, and the state's read and update (Qin et al., Lightning Attention-2, algorithm 1).
      case LinearAttentionKind::lightning:
        return scores + mix + 2 * state;
      // The same four products, C B^T shared by the heads of a group (Dao and Gu, Mamba-2, section 6).
      case LinearAttentionKind::mamba2:
        return scores * number(s.key_heads) / number(s.value_heads) + mix + 2 * state;
      // WY form: K K^T, Q K^T, the triangular inverse applied to K and V, then scores times values and three products
      // with the state (Yang et al., Gated Delta Networks, section 3.3). KDA has the same products.
      case LinearAttentionKind::gdn:
      case LinearAttentionKind::kda:
        break;
    }
    return 3 * scores + 2 * mix + 3 * state + c * c * c / 3;
  }

  // Prefill in chunks on the tensor units; decode as a vector recurrence. The state is kept in fp32.
  static Work recurrence(const LinearAttentionShape& s) {
    const double tokens = number(s.batch) * number(s.seq_len);
    const double key = number(s.key_dim), value = number(s.value_dim), value_heads = number(s.value_heads);
    const double keys = number(s.key_heads) * key, values = value_heads * value;
    double gates =
        0;  // fp32 per token: decay and write strength per head; KDA decays per channel; lightning's is fixed
    if (s.kind == LinearAttentionKind::gdn) gates = 2 * value_heads;
    if (s.kind == LinearAttentionKind::kda) gates = value_heads * (key + 1);
    if (s.kind == LinearAttentionKind::mamba2) gates = value_heads;
    const double inputs = bytes_of(s.dtype, tokens * (2 * keys + values)) + 4 * tokens * gates;
    const double outputs = bytes_of(s.dtype, tokens * values);
    const double state = 4 * number(s.batch) * value_heads * key * value;

    if (s.decode) {  // decay, S k, outer product, S q: 7 per element of the state (without the delta rule: 5)
      const bool delta = s.kind == LinearAttentionKind::gdn || s.kind == LinearAttentionKind::kda;
      return {.flops = Flops(tokens * values * key * (delta ? 7 : 5)),
              .math = DType::fp32,
              .activations_read = Bytes(inputs + state),
              .written = Bytes(outputs + state)};
    }
    const int64_t chunk = std::max<int64_t>(1, s.chunk);
    const double whole = number(s.seq_len / chunk), rest = number(s.seq_len % chunk);
    const double heads = number(s.batch) * value_heads;
    Work work{.flops = Flops(heads * (whole * chunk_flops(s, number(chunk)) + chunk_flops(s, rest))),
              .math = s.dtype,
              .activations_read = Bytes(inputs),
              .written = Bytes(outputs + state)};
    if (s.pass == Pass::backward) {  // the chunk is recomputed, then two products for each one forward
      work.flops = work.flops * 3;
      work.activations_read = Bytes(inputs + outputs);
      work.written = Bytes(inputs);
    }
    return work;
  }
};

}  // namespace

int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

double attended_pairs(const AttentionShape& s) {
  const double reach = reach_of(s.window, s.kv_len);
  if (s.causal && s.phase != AttentionPhase::encoder) return causal_pairs(s.q_len, s.kv_len, reach);
  if (s.window <= 0) return number(s.q_len) * number(s.kv_len);
  // As far ahead as back: query and keys after it.
  return causal_pairs(s.q_len, s.kv_len, reach) + capped_triangle(number(std::min(s.q_len, s.kv_len) - 1), reach - 1);
}

Work count_work(const KernelShape& shape) {
  const Work work = std::visit(Counter{}, shape);
  ensure(std::isfinite(work.flops.value()) && work.flops.value() >= 0, "FLOPs are a count");
  ensure(std::isfinite(work.bytes().value()) && work.bytes().value() >= 0, "bytes are a count");
  return work;
}

double touched_lines(double lines, double nonzeros, SparsePattern pattern) {
  if (!(lines > 0)) return 0;
  const double mean = nonzeros / lines;
  if (pattern != SparsePattern::power) return lines * (1 - portable_exp(-mean));
  // The line at the share x of all lines has mean 0.4 x^-0.6. Steps are fine where that changes fast: x = t^4.
  constexpr int steps = 64;
  double share = 0;
  for (int i = 0; i < steps; ++i) {
    const double t = (i + 0.5) / steps, x = t * t * t * t;
    const double line = mean * busiest_share_exponent * portable_pow(x, busiest_share_exponent - 1);
    share += 4 * t * t * t / steps * (1 - portable_exp(-line));
  }
  return lines * std::min(1.0, share);
}

double expected_longest_row(double rows, double columns, double nonzeros, SparsePattern pattern) {
  const double mean = nonzeros / std::max(1.0, rows);
  double longest = mean;
  // The largest of many Poisson counts, by the tail of the normal distribution.
  if (pattern == SparsePattern::uniform) longest = mean + std::sqrt(2 * mean * portable_log(std::max(2.0, rows)));
  if (pattern == SparsePattern::power) {
    const double drawn = nonzeros * portable_pow(1 / std::max(1.0, rows), busiest_share_exponent);
    longest = touched_lines(columns, std::max(mean, drawn), pattern);  // a column counts once
  }
  return std::clamp(std::ceil(longest), std::min(1.0, nonzeros), std::max(1.0, columns));
}

}  // namespace foretoken
