#include <algorithm>

#include <fmt/format.h>

#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

// The same elements in the same order under another shape.
void viewed(NodeInference& node, OnnxDims dims) {
  if (onnx_elements(dims) != onnx_elements(node.dims(0))) {
    node.fail(fmt::format("{} as {}", dims_text(node.dims(0)), dims_text(dims)), "as many elements");
  }
  node.output(0, node.type(0), std::move(dims));
  node.view(0, 0);
  if (node.values(0) != nullptr) node.set_values(0, *node.values(0));
}

int64_t product(const OnnxDims& dims, size_t first, size_t last) {
  return onnx_elements(
             OnnxDims(dims.begin() + static_cast<ptrdiff_t>(first), dims.begin() + static_cast<ptrdiff_t>(last)))
      .value_or(0);
}

std::vector<bool> chosen_axes(const OnnxNodeView& node, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> chosen(rank, false);
  for (const int64_t axis : axes) chosen[node.axis(axis, rank)] = true;
  return chosen;
}

// One axis of a Slice: elements start, start + step, ... as numpy cuts them.
struct Cut {
  int64_t start = 0, step = 1, count = 0;
};

Cut cut_axis(const OnnxNodeView& node, int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0) node.fail("a step of 0", "another step");
  const auto clamped = [&](int64_t place, int64_t least, int64_t most) {
    return std::clamp(place < 0 ? std::max(place, -size) + size : std::min(place, size), least, most);
  };
  Cut cut{.step = step};
  if (step > 0) {
    cut.start = clamped(start, 0, size);
    const int64_t stop = clamped(end, 0, size);
    cut.count = stop > cut.start ? (stop - cut.start - 1) / step + 1 : 0;
  } else {
    cut.start = clamped(start, 0, std::max<int64_t>(size - 1, 0));
    // An end below -size means: down to the first element.
    const int64_t stop = end < -size ? -1 : clamped(end, -1, size - 1);
    // -step of the smallest number does not exist; no axis is that long either.
    const int64_t stride = step < -most_onnx_elements ? most_onnx_elements : -step;
    cut.step = -stride;
    cut.count = size > 0 && cut.start > stop ? (cut.start - stop - 1) / stride + 1 : 0;
  }
  return cut;
}

}  // namespace

void identity(NodeInference& node) {
  viewed(node, node.dims(0));
}

void reshape(NodeInference& node) {
  const OnnxNodeView::List wanted = node.list("shape", 1);
  if (!wanted.values) return;
  const OnnxDims& input = node.dims(0);
  const bool zero_is_zero = node.attribute("allowzero", 0) != 0;
  OnnxDims dims = *wanted.values;
  int64_t rest = -1, others = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (rest >= 0) node.fail(dims_text(dims), "one -1 at most");
      rest = static_cast<int64_t>(i);
      dims[i] = 1;
    } else if (dims[i] == 0 && !zero_is_zero) {
      if (i >= input.size()) node.fail(dims_text(dims), "0 only where the input has a size to copy");
      dims[i] = input[i];
    }
  }
  const std::optional<int64_t> known = onnx_elements(dims);
  if (!known) node.fail(dims_text(dims), "sizes from 0, and one -1 at most");
  others = *known;
  const int64_t elements = onnx_elements(input).value_or(0);
  if (rest >= 0) {
    if (others == 0 || elements % others != 0) {
      node.fail(fmt::format("{} as {}", dims_text(input), dims_text(*wanted.values)), "sizes that divide the elements");
    }
    dims[static_cast<size_t>(rest)] = elements / others;
  }
  viewed(node, std::move(dims));
}

void flatten(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const int64_t axis = node.attribute("axis", 1);
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis > rank) node.fail(fmt::format("axis {}", axis), "an axis of the input");
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  viewed(node, {product(dims, 0, at), product(dims, at, dims.size())});
}

void squeeze(NodeInference& node) {
  const OnnxNodeView::List axes = node.list("axes", 1);
  if (axes.given && !axes.values) return;
  const OnnxDims& dims = node.dims(0);
  const std::vector<bool> chosen = chosen_axes(node, axes.values.value_or(std::vector<int64_t>()), dims.size());
  OnnxDims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool leaves = axes.given ? chosen[i] : dims[i] == 1;
    if (leaves && dims[i] != 1) node.fail(fmt::format("axis {} of {}", i, dims_text(dims)), "an axis of size 1");
    if (!leaves) result.push_back(dims[i]);
  }
  viewed(node, std::move(result));
}

void unsqueeze(NodeInference& node) {
  const OnnxNodeView::List axes = node.list("axes", 1);
  if (!axes.values) return;
  const OnnxDims& dims = node.dims(0);
  const size_t rank = dims.size() + axes.values->size();
  if (rank > most_onnx_rank) node.fail(fmt::format("{} dimensions", rank), "at most 64");
  const std::vector<bool> chosen = chosen_axes(node, *axes.values, rank);
  if (static_cast<size_t>(std::count(chosen.begin(), chosen.end(), true)) != axes.values->size()) {
    node.fail("an axis named twice", "different axes");
  }
  OnnxDims result;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) result.push_back(chosen[i] ? 1 : dims[next++]);
  viewed(node, std::move(result));
}

void transpose(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  std::vector<int64_t> order = node.list_attribute("perm");
  if (order.empty()) {
    for (size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  if (order.size() != dims.size()) node.fail(fmt::format("perm of {}", order.size()), "one entry for each dimension");
  std::vector<bool> seen(dims.size(), false);
  OnnxDims result;
  for (const int64_t axis : order) {
    const size_t at = node.axis(axis, dims.size());
    if (seen[at]) node.fail("an axis named twice in perm", "each axis once");
    seen[at] = true;
    result.push_back(dims[at]);
  }
  node.output(0, node.type(0), result);
  const std::vector<int64_t> strides = strides_of(dims);
  pick_values(node, 0, result, [&](const std::vector<int64_t>& at) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place += at[i] * strides[node.axis(order[i], dims.size())];
    return place;
  });
}

namespace {

// Inputs first, first + step, ... one after the other along `axis`.
OnnxDims joined(const OnnxNodeView& node, size_t first, size_t step, size_t axis) {
  OnnxDims dims = node.dims(first);
  for (size_t i = first + step; i < node.inputs(); i += step) {
    const OnnxDims& next = node.dims(i);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (next.size() != dims.size() || (d != axis && next[d] != dims[d])) {
        node.fail(fmt::format("{} after {}", dims_text(next), dims_text(dims)),
                  fmt::format("the same sizes but along axis {}", axis));
      }
    }
    dims[axis] += next[axis];
    if (!onnx_elements(dims)) node.fail(dims_text(dims), "at most 2^46 elements");
  }
  return dims;
}

}  // namespace

void concat(NodeInference& node) {
  if (node.inputs() == 0) node.fail("no inputs", "one or more");
  const size_t axis = node.axis(node.attribute("axis", 1), node.rank(0));
  const OnnxDims dims = joined(node, 0, 1, axis);
  node.output(0, node.type(0), dims);
  // Only lists are joined by value: they are what shapes are made of.
  OnnxValues values;
  for (size_t i = 0; i < node.inputs(); ++i) {
    if (node.values(i) == nullptr || dims.size() != 1) return;
    values.integers.insert(values.integers.end(), node.values(i)->integers.begin(), node.values(i)->integers.end());
    values.reals.insert(values.reals.end(), node.values(i)->reals.begin(), node.values(i)->reals.end());
  }
  if (values.integers.empty() || values.reals.empty()) node.set_values(0, std::move(values));
}

// Scale and zero point of the output, then tensor, scale and zero point of each input.
void quantized_concat(NodeInference& node) {
  if (node.inputs() < 3) node.fail(fmt::format("{} inputs", node.inputs()), "five or more");
  const size_t axis = node.axis(node.attribute("axis", 1), node.rank(2));
  node.output(0, node.type(2), joined(node, 2, 3, axis));
}

void split(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const size_t axis = node.axis(node.attribute("axis", 0), dims.size());
  const OnnxNodeView::List sizes = node.list("split", 1);
  if (sizes.given && !sizes.values) return;
  std::vector<int64_t> parts = sizes.values.value_or(std::vector<int64_t>());
  if (parts.empty()) {
    const auto count = static_cast<int64_t>(node.outputs());
    const int64_t each = (dims[axis] + count - 1) / std::max<int64_t>(count, 1);
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back(std::clamp<int64_t>(dims[axis] - std::min(i * each, dims[axis]), 0, each));
    }
  }
  if (parts.size() < node.outputs()) node.fail(fmt::format("{} sizes", parts.size()), "one for each output");
  const std::vector<int64_t> strides = strides_of(dims);
  int64_t start = 0;
  for (size_t i = 0; i < node.outputs(); ++i) {
    if (parts[i] < 0 || parts[i] > dims[axis] - start) {
      node.fail(fmt::format("a part of {}", parts[i]), fmt::format("parts of {}", dims[axis]));
    }
    OnnxDims part = dims;
    part[axis] = parts[i];
    node.output(i, node.type(0), part);
    pick_values(
        node, 0, part,
        [&](const std::vector<int64_t>& at) {
          int64_t place = start * strides[axis];
          for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
          return place;
        },
        i);
    start += parts[i];
  }
}

void slice(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const OnnxNodeView::List starts = node.list("starts", 1), ends = node.list("ends", 2), axes = node.list("axes", 3);
  const OnnxNodeView::List steps = node.list("steps", 4);
  if (!starts.values || !ends.values || (axes.given && !axes.values) || (steps.given && !steps.values)) {
    node.output(0, node.type(0), dims, OnnxShapeOrigin::bounded);
    node.note("where it cuts depends on data: its output is taken to be as large as its input");
    return;
  }
  const size_t count = starts.values->size();
  if (ends.values->size() != count || (axes.given && axes.values->size() != count) ||
      (steps.given && steps.values->size() != count)) {
    node.fail("lists of different lengths", "as many starts, ends, axes and steps");
  }
  OnnxDims result = dims;
  std::vector<Cut> cuts(dims.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = node.axis(axes.given ? (*axes.values)[i] : static_cast<int64_t>(i), dims.size());
    cuts[axis] =
        cut_axis(node, dims[axis], (*starts.values)[i], (*ends.values)[i], steps.given ? (*steps.values)[i] : 1);
    result[axis] = cuts[axis].count;
  }
  node.output(0, node.type(0), result);
  const std::vector<int64_t> strides = strides_of(dims);
  pick_values(node, 0, result, [&](const std::vector<int64_t>& at) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place += (cuts[i].start + at[i] * cuts[i].step) * strides[i];
    return place;
  });
}

void pad(NodeInference& node) {
  const OnnxNodeView::List pads = node.list("pads", 1);
  const OnnxNodeView::List axes = node.list("axes", 3);
  if (!pads.values || (axes.given && !axes.values)) return;
  OnnxDims dims = node.dims(0);
  std::vector<int64_t> padded = axes.values.value_or(std::vector<int64_t>());
  for (size_t i = 0; !axes.given && i < dims.size(); ++i) padded.push_back(static_cast<int64_t>(i));
  if (pads.values->size() != 2 * padded.size()) {
    node.fail(fmt::format("{} pads", pads.values->size()), fmt::format("{}, two for each axis", 2 * padded.size()));
  }
  for (size_t i = 0; i < padded.size(); ++i) {
    const int64_t before = (*pads.values)[i], after = (*pads.values)[i + padded.size()];
    if (std::abs(before) > most_onnx_elements || std::abs(after) > most_onnx_elements) {
      node.fail("a pad without measure", "at most 2^46");
    }
    dims[node.axis(padded[i], dims.size())] += before + after;
  }
  node.output(0, node.type(0), std::move(dims));
}

void expand(NodeInference& node) {
  const std::optional<std::vector<int64_t>> wanted = node.integers(1);
  if (!wanted) return;
  const std::optional<OnnxDims> dims = broadcast(node.dims(0), *wanted);
  if (!dims) {
    node.fail(fmt::format("{} as {}", dims_text(node.dims(0)), dims_text(*wanted)), "sizes that are equal or 1");
  }
  node.output(0, node.type(0), *dims);
  if (node.values(0) == nullptr || onnx_elements(*dims).value_or(most_onnx_values + 1) > most_onnx_values) return;
  node.set_values(0, picked(*node.values(0), broadcast_sources(node.dims(0), *dims)));
}

void tile(NodeInference& node) {
  const std::optional<std::vector<int64_t>> repeats = node.integers(1);
  if (!repeats) return;
  OnnxDims dims = node.dims(0);
  if (repeats->size() != dims.size()) node.fail(fmt::format("{} repeats", repeats->size()), "one for each dimension");
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t times = (*repeats)[i];
    if (times < 0 || times > most_onnx_elements || (dims[i] > 0 && times > most_onnx_elements / dims[i])) {
      node.fail(fmt::format("{} repeats", times), "at least 0, and at most 2^46 elements");
    }
    dims[i] *= times;
  }
  node.output(0, node.type(0), dims);
  const OnnxDims& input = node.dims(0);
  const std::vector<int64_t> strides = strides_of(input);
  pick_values(node, 0, dims, [&](const std::vector<int64_t>& at) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place += at[i] % input[i] * strides[i];
    return place;
  });
}

namespace {

int64_t block_size(const OnnxNodeView& node) {
  const int64_t block = node.attribute("blocksize", 1);
  if (block < 1 || block > 256 || node.rank(0) != 4) {
    node.fail(fmt::format("blocksize {} of {}", block, dims_text(node.dims(0))), "blocks of a four-dimensional tensor");
  }
  return block;
}

}  // namespace

void depth_to_space(NodeInference& node) {
  const int64_t block = block_size(node);
  const OnnxDims& d = node.dims(0);
  if (d[1] % (block * block) != 0) node.fail(dims_text(d), "channels that the block divides");
  node.output(0, node.type(0), {d[0], d[1] / (block * block), d[2] * block, d[3] * block});
}

void space_to_depth(NodeInference& node) {
  const int64_t block = block_size(node);
  const OnnxDims& d = node.dims(0);
  if (d[2] % block != 0 || d[3] % block != 0) node.fail(dims_text(d), "sides that the block divides");
  node.output(0, node.type(0), {d[0], d[1] * block * block, d[2] / block, d[3] / block});
}

}  // namespace foretoken::onnx_rules
