#include "accelerator/systolic/operands.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

// A matrix of `rows` x `lanes`, read along its diagonals from the lower left.
template <class At>
std::vector<int64_t> along_diagonals(int64_t rows, int64_t lanes, At at) {
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(rows * lanes));
  for (int64_t diagonal = 0; diagonal < rows + lanes - 1; ++diagonal) {
    const int64_t lowest = std::max<int64_t>(0, diagonal - lanes + 1);
    for (int64_t row = std::min(diagonal, rows - 1); row >= lowest; --row) order.push_back(at(row, diagonal - row));
  }
  return order;
}

template <class At>
std::vector<int64_t> row_by_row(int64_t rows, int64_t lanes, At at) {
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(rows * lanes));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t lane = 0; lane < lanes; ++lane) order.push_back(at(row, lane));
  }
  return order;
}

// The folds of an operand stand below one another, `steps` rows each; at(across, step) is its word, `across` counted
// over the whole operand, of which `extent` lanes have work.
template <class At>
auto folded(int64_t steps, int64_t lanes, int64_t extent, At at) {
  return [=](int64_t row, int64_t lane) -> int64_t {
    const int64_t across = row / steps * lanes + lane;
    return across < extent ? at(across, row % steps) : -1;
  };
}

}  // namespace

OperandAddresses::OperandAddresses(const SystolicLayer& layer)
    : height_(layer.input_height),
      width_(layer.input_width),
      depth_(layer.gemm().k),
      filters_(layer.filters),
      input_addresses_(layer.input_height * layer.input_width * layer.channels) {
  const int64_t row_words = layer.input_width * layer.channels;
  const int64_t output_width = layer.output_width();
  windows_.resize(static_cast<size_t>(layer.gemm().m));
  for (size_t m = 0; m < windows_.size(); ++m) {
    const int64_t row = static_cast<int64_t>(m) / output_width * layer.stride_height;
    const int64_t column = static_cast<int64_t>(m) % output_width * layer.stride_width;
    windows_[m] = {.row = row, .column = column, .address = row * row_words + column * layer.channels};
  }
  places_.resize(static_cast<size_t>(depth_));
  for (size_t k = 0; k < places_.size(); ++k) {
    const int64_t place = static_cast<int64_t>(k) / layer.channels;
    const int64_t row = place / layer.filter_width;
    const int64_t column = place % layer.filter_width;
    const int64_t channel = static_cast<int64_t>(k) % layer.channels;
    places_[k] = {.row = row, .column = column, .address = row * row_words + column * layer.channels + channel};
  }
}

std::vector<int64_t> input_prefetch_order(const SystolicArray& array, const SystolicProjection& shape,
                                          const OperandAddresses& operands) {
  const int64_t row_folds = ceil_quotient(shape.rows, array.rows);
  const int64_t column_folds = ceil_quotient(shape.columns, array.columns);
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      return along_diagonals(row_folds * shape.steps, array.rows,
                             folded(shape.steps, array.rows, shape.rows,
                                    [&](int64_t m, int64_t k) { return operands.input_address(m, k); }));
    case Dataflow::weight_stationary:
      return along_diagonals(row_folds * shape.steps, array.rows,
                             folded(shape.steps, array.rows, shape.rows,
                                    [&](int64_t k, int64_t m) { return operands.input_address(m, k); }));
    case Dataflow::input_stationary:
      return row_by_row(column_folds * shape.rows, array.columns,
                        folded(shape.rows, array.columns, shape.columns,
                               [&](int64_t m, int64_t k) { return operands.input_address(m, k); }));
  }
  ensure(false, "a dataflow is one of three");
  return {};
}

std::vector<int64_t> weight_prefetch_order(const SystolicArray& array, const SystolicProjection& shape,
                                           const OperandAddresses& operands) {
  const int64_t row_folds = ceil_quotient(shape.rows, array.rows);
  const int64_t column_folds = ceil_quotient(shape.columns, array.columns);
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      return along_diagonals(column_folds * shape.steps, array.columns,
                             folded(shape.steps, array.columns, shape.columns,
                                    [&](int64_t n, int64_t k) { return operands.weight_address(k, n); }));
    case Dataflow::weight_stationary:
      return row_by_row(column_folds * shape.rows, array.columns,
                        folded(shape.rows, array.columns, shape.columns,
                               [&](int64_t n, int64_t k) { return operands.weight_address(k, n); }));
    case Dataflow::input_stationary:
      return along_diagonals(row_folds * shape.steps, array.rows,
                             folded(shape.steps, array.rows, shape.rows,
                                    [&](int64_t k, int64_t n) { return operands.weight_address(k, n); }));
  }
  ensure(false, "a dataflow is one of three");
  return {};
}

}  // namespace foretoken
