#include <algorithm>

#include <fmt/format.h>

#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

// Statistics of each row: the sides from `axis` on are 1.
OnnxDims statistics(const OnnxDims& dims, size_t axis) {
  OnnxDims result = dims;
  for (size_t i = axis; i < result.size(); ++i) result[i] = 1;
  return result;
}

void expect_rank(const OnnxNodeView& node, size_t input, size_t least, size_t most) {
  if (node.rank(input) >= least && node.rank(input) <= most) return;
  node.fail(fmt::format("input {} of {}", input, dims_text(node.dims(input))),
            fmt::format("{} to {} dimensions", least, most));
}

int64_t head_count(const OnnxNodeView& node, std::string_view name, int64_t otherwise) {
  return std::clamp<int64_t>(node.attribute(name, otherwise), 1, 1 << 16);
}

}  // namespace

void normalization(NodeInference& node) {
  node.output(0, node.type(0), node.dims(0));
  if (node.rank(0) == 0 || node.outputs() < 2) return;
  const OnnxDims rows = statistics(node.dims(0), node.axis(node.attribute("axis", -1), node.rank(0)));
  for (size_t i = 1; i < node.outputs(); ++i) node.output(i, OnnxType::float32, rows);
}

void batch_normalization(NodeInference& node) {
  node.output(0, node.type(0), node.dims(0));
  for (size_t i = 1; i < node.outputs(); ++i) node.output(i, node.type(0), node.dims(3));
}

// com.microsoft: output, mean, inverse deviation, sum of input and skip
void skip_normalization(NodeInference& node) {
  node.output(0, node.type(0), node.dims(0));
  if (node.rank(0) == 0) return;
  const OnnxDims rows = statistics(node.dims(0), node.rank(0) - 1);
  node.output(1, OnnxType::float32, rows);
  node.output(2, OnnxType::float32, rows);
  node.output(3, node.type(0), node.dims(0));
}

// com.microsoft: ids, segments, tables of words, positions and segments, gamma, beta, mask
void embed_layer_normalization(NodeInference& node) {
  expect_rank(node, 0, 2, 2);
  expect_rank(node, 2, 2, 2);
  const int64_t batch = node.dims(0)[0], length = node.dims(0)[1], width = node.dims(2)[1];
  node.output(0, node.type(2), {batch, length, width});
  node.output(1, OnnxType::int32, {batch});
  node.output(2, node.type(2), {batch, length, width});
}

// Left out of inference: the input itself.
void dropout(NodeInference& node) {
  node.output(0, node.type(0), node.dims(0));
  node.view(0, 0);
  node.output(1, OnnxType::boolean, node.dims(0));
}

// X [steps, batch, input], or [batch, steps, input] with layout 1; Y, last state, and of an LSTM its last cell
void recurrent(NodeInference& node) {
  expect_rank(node, 0, 3, 3);
  expect_rank(node, 2, 3, 3);
  const OnnxDims& x = node.dims(0);
  const bool batch_first = node.attribute("layout", 0) != 0;
  const int64_t batch = batch_first ? x[0] : x[1], steps = batch_first ? x[1] : x[0];
  const int64_t hidden = node.attribute("hidden_size", node.dims(2)[2]), directions = node.dims(2)[0];
  const OnnxDims last = batch_first ? OnnxDims{batch, directions, hidden} : OnnxDims{directions, batch, hidden};
  node.output(0, node.type(0),
              batch_first ? OnnxDims{batch, steps, directions, hidden} : OnnxDims{steps, directions, batch, hidden});
  node.output(1, node.type(0), last);
  node.output(2, node.type(0), last);
}

// com.microsoft: input [batch, length, width], weights [width, q + k + v]; without sizes of its own, v is a third.
void attention(NodeInference& node) {
  expect_rank(node, 0, 3, 3);
  expect_rank(node, 1, 2, 2);
  const OnnxDims& x = node.dims(0);
  const std::vector<int64_t> widths = node.list_attribute("qkv_hidden_sizes");
  const int64_t values = widths.size() == 3 ? widths[2] : node.dims(1)[1] / 3;
  node.output(0, node.type(0), {x[0], x[1], values});
  const int64_t heads = head_count(node, "num_heads", 1);
  node.output(1, node.type(0), {2, x[0], heads, x[1] + (node.rank(4) == 5 ? node.dims(4)[3] : 0), values / heads});
}

namespace {

// Keys so far and the new ones, [batch, heads, length, width], where the node gives them back.
void put_cache(NodeInference& node, size_t output, size_t past, OnnxDims added) {
  if (node.rank(past) == 4) added[2] += node.dims(past)[2];
  node.output(output, node.type(0), std::move(added));
}

}  // namespace

// com.microsoft: query [batch, length, width] or packed [batch, length, heads, 3, head]; key and value likewise, or
// [batch, heads, length, head]
void multi_head_attention(NodeInference& node) {
  expect_rank(node, 0, 3, 5);
  const OnnxDims& query = node.dims(0);
  const int64_t heads = head_count(node, "num_heads", 1);
  if (query.size() == 5) {
    node.output(0, node.type(0), {query[0], query[1], query[2] * query[4]});
    return;
  }
  expect_rank(node, 0, 3, 3);
  const OnnxDims& value = node.has(2) ? node.dims(2) : node.dims(0);
  const int64_t width = value.size() == 4 ? value[1] * value[3] : value.back();
  node.output(0, node.type(0), {query[0], query[1], width});
  const int64_t keys = value.size() == 4 ? value[2] : value.size() == 3 ? value[1] : query[1];
  put_cache(node, 1, 6, {query[0], heads, keys, query[2] / heads});
  put_cache(node, 2, 7, {query[0], heads, keys, width / heads});
}

// com.microsoft: query, key and value [batch, length, width], or all packed into the first; caches before and after
void group_query_attention(NodeInference& node) {
  expect_rank(node, 0, 3, 3);
  const OnnxDims& query = node.dims(0);
  const int64_t heads = head_count(node, "num_heads", 1);
  const int64_t kv_heads = head_count(node, "kv_num_heads", heads);
  const bool packed = !node.has(1);
  const int64_t head = packed ? query[2] / (heads + 2 * kv_heads) : query[2] / heads;
  node.output(0, node.type(0), {query[0], query[1], heads * head});
  for (const size_t output : {size_t{1}, size_t{2}}) {
    // The cache is a buffer of full length that the node writes into.
    const size_t past = output + 2;
    node.output(output, node.type(0),
                node.rank(past) == 4 ? node.dims(past) : OnnxDims{query[0], kv_heads, query[1], head});
  }
}

// ai.onnx 23: Q, K, V of [batch, heads, length, head], or [batch, length, width] with head counts as attributes
void onnx_attention(NodeInference& node) {
  const OnnxDims &query = node.dims(0), &value = node.dims(2);
  if (query.size() != value.size() || query.size() < 3 || query.size() > 4) {
    node.fail(fmt::format("{} and {}", dims_text(query), dims_text(value)), "queries and values of 3 or 4 dimensions");
  }
  OnnxDims dims = query;
  dims.back() = value.back();
  if (query.size() == 3) {
    const int64_t heads = head_count(node, "q_num_heads", 1);
    const int64_t kv_heads = head_count(node, "kv_num_heads", 1);
    dims.back() = value.back() / kv_heads * heads;
  }
  node.output(0, node.type(0), std::move(dims));
  if (query.size() != 4) return;
  put_cache(node, 1, 4, node.dims(1));
  put_cache(node, 2, 5, value);
}

}  // namespace foretoken::onnx_rules
