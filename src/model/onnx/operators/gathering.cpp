#include <algorithm>

#include <fmt/format.h>

#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {

void gather(NodeInference& node) {
  const OnnxDims& data = node.dims(0);
  const OnnxDims& indices = node.dims(1);
  const size_t axis = node.axis(node.attribute("axis", 0), data.size());
  OnnxDims dims(data.begin(), data.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(axis) + 1, data.end());
  node.output(0, node.type(0), dims);

  const std::optional<std::vector<int64_t>> chosen = node.integers(1);
  if (!chosen || node.values(0) == nullptr) return;
  for (const int64_t index : *chosen) {
    if (index < -data[axis] || index >= data[axis]) {
      node.fail(fmt::format("index {}", index), fmt::format("an index into {}", data[axis]));
    }
  }
  const std::vector<int64_t> strides = strides_of(data), index_strides = strides_of(indices);
  pick_values(node, 0, dims, [&](const std::vector<int64_t>& at) {
    int64_t which = 0, place = 0;
    for (size_t i = 0; i < indices.size(); ++i) which += at[axis + i] * index_strides[i];
    const int64_t index = (*chosen)[static_cast<size_t>(which)];
    for (size_t i = 0; i < axis; ++i) place += at[i] * strides[i];
    for (size_t i = axis + 1; i < data.size(); ++i) place += at[i + indices.size() - 1] * strides[i];
    return place + (index < 0 ? index + data[axis] : index) * strides[axis];
  });
}

void gather_elements(NodeInference& node) {
  node.output(0, node.type(0), node.dims(1));
}

void gather_nd(NodeInference& node) {
  const OnnxDims& data = node.dims(0);
  const OnnxDims& indices = node.dims(1);
  const int64_t batch = node.attribute("batch_dims", 0);
  const int64_t depth = indices.empty() ? 0 : indices.back();
  const auto rank = static_cast<int64_t>(data.size());
  if (indices.empty() || batch < 0 || batch > rank || depth < 0 || depth > rank - batch) {
    node.fail(fmt::format("indices of {} into {}", dims_text(indices), dims_text(data)),
              "an index no longer than the data has dimensions");
  }
  OnnxDims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(batch + depth), data.end());
  node.output(0, node.type(0), std::move(dims));
}

void one_hot(NodeInference& node) {
  std::optional<int64_t> depth = node.integer(1);
  if (const OnnxValues* known = node.values(1); known != nullptr && known->reals.size() == 1) {
    depth = static_cast<int64_t>(std::clamp(known->reals[0], 0.0, 1e12));
  }
  if (!depth) return;
  OnnxDims dims = node.dims(0);
  const size_t axis = node.axis(node.attribute("axis", -1), dims.size() + 1);
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), *depth);
  node.output(0, node.type(2), std::move(dims));
}

void top_k(NodeInference& node) {
  OnnxDims dims = node.dims(0);
  const size_t axis = node.axis(node.attribute("axis", -1), dims.size());
  const std::optional<int64_t> k = node.has_attribute("k") ? node.attribute("k", 1) : node.integer(1);
  const OnnxShapeOrigin origin = k ? OnnxShapeOrigin::inferred : OnnxShapeOrigin::bounded;
  if (k) dims[axis] = std::min(*k, dims[axis]);
  if (!k) node.note("how many it keeps depends on data: all are counted");
  node.output(0, node.type(0), dims, origin);
  node.output(1, OnnxType::int64, dims, origin);
}

void non_zero(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  const OnnxValues* known = node.values(0);
  if (known == nullptr) {
    node.output(0, OnnxType::int64, {rank, onnx_elements(dims).value_or(0)}, OnnxShapeOrigin::bounded);
    node.note("how many elements are not zero depends on data: all are counted");
    return;
  }
  std::vector<std::vector<int64_t>> places;
  for_each_element(dims, [&](const std::vector<int64_t>& at, int64_t number) {
    if (real_at(*known, static_cast<size_t>(number)) != 0) places.push_back(at);
  });
  OnnxValues values;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    for (const std::vector<int64_t>& at : places) values.integers.push_back(at[axis]);
  }
  node.output(0, OnnxType::int64, {rank, static_cast<int64_t>(places.size())});
  node.set_values(0, std::move(values));
}

void unique(NodeInference& node) {
  const int64_t elements = onnx_elements(node.dims(0)).value_or(0);
  OnnxDims dims = node.dims(0);
  if (!node.has_attribute("axis")) dims = {elements};
  node.output(0, node.type(0), dims, OnnxShapeOrigin::bounded);
  for (size_t i = 1; i < node.outputs(); ++i) node.output(i, OnnxType::int64, {elements}, OnnxShapeOrigin::bounded);
  node.note("how many elements differ depends on data: all are counted");
}

void compress(NodeInference& node) {
  OnnxDims dims = node.dims(0);
  if (!node.has_attribute("axis")) dims = {onnx_elements(dims).value_or(0)};
  const size_t axis = node.has_attribute("axis") ? node.axis(node.attribute("axis", 0), dims.size()) : 0;
  if (const std::optional<std::vector<int64_t>> condition = node.integers(1)) {
    dims[axis] = std::count_if(condition->begin(), condition->end(), [](int64_t value) { return value != 0; });
    node.output(0, node.type(0), std::move(dims));
    return;
  }
  node.output(0, node.type(0), std::move(dims), OnnxShapeOrigin::bounded);
  node.note("how many elements it keeps depends on data: all are counted");
}

// boxes [batch, count, 4], scores [batch, classes, count]: at most max_output_boxes_per_class of each class and image.
void non_max_suppression(NodeInference& node) {
  const OnnxDims& boxes = node.dims(0);
  const OnnxDims& scores = node.dims(1);
  if (boxes.size() != 3 || scores.size() != 3) {
    node.fail(fmt::format("{} boxes, {} scores", dims_text(boxes), dims_text(scores)), "three dimensions each");
  }
  const int64_t kept = std::clamp<int64_t>(node.integer(2).value_or(boxes[1]), 0, boxes[1]);
  const int64_t rows = onnx_elements({scores[0], scores[1], kept}).value_or(0);
  node.output(0, OnnxType::int64, {rows, 3}, OnnxShapeOrigin::bounded);
  node.note("how many boxes it keeps depends on data: the most it may are counted");
}

}  // namespace foretoken::onnx_rules
