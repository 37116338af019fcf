#include "accelerator/systolic/compute.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::compute_test {

// A processing element that remembers one word to the right, one downwards, and what stays in it.
struct Cell {
  double held = 0;
  double right = 0;
  double down = 0;
};

using Matrix = std::vector<std::vector<double>>;

Matrix small_numbers(RandomStream& random, int64_t rows, int64_t columns) {
  Matrix matrix(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns)));
  for (auto& row : matrix) {
    for (double& value : row) value = static_cast<double>(random.below(7)) - 3;
  }
  return matrix;
}

double word(const Matrix& matrix, int64_t row, int64_t column) {
  if (row < 0 || column < 0 || row >= static_cast<int64_t>(matrix.size()) ||
      column >= static_cast<int64_t>(matrix.front().size())) {
    return 0;
  }
  return matrix[static_cast<size_t>(row)][static_cast<size_t>(column)];
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.front().size(), std::vector<double>(matrix.size()));
  for (size_t i = 0; i < matrix.size(); ++i) {
    for (size_t j = 0; j < matrix.front().size(); ++j) result[j][i] = matrix[i][j];
  }
  return result;
}

struct Simulated {
  Matrix product;
  int64_t cycles = 0;
};

// Words move one cell per cycle; a product is only right if the skew, the loading and the draining are.
class CellArray {
 public:
  CellArray(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), cells_(static_cast<size_t>(rows * columns)) {}

  // rows x columns of outputs stay; `steps` words enter each row from the left and each column from above.
  int64_t output_stationary_fold(const Matrix& a, const Matrix& b, int64_t row0, int64_t column0, Matrix& product) {
    const auto steps = static_cast<int64_t>(b.size());
    cells_.assign(cells_.size(), {});
    int64_t cycles = 0;
    for (int64_t t = 0; t < steps + rows_ + columns_ - 2; ++t, ++cycles) {
      move([&](int64_t row) { return word(a, row0 + row, t - row); },
           [&](int64_t column) { return word(b, t - column, column0 + column); });
      for (Cell& cell : cells_) cell.held += cell.right * cell.down;
    }
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < columns_; ++j) put(product, row0 + i, column0 + j, at(i, j).held);
    }
    return cycles;
  }

  // Rows x columns of `held` stay, loaded one row per cycle; `streamed` (steps x depth) enters from the left, sums
  // leave below: out[step][column] += streamed[step][row] * held[row][column].
  int64_t stationary_fold(const Matrix& streamed, const Matrix& held, int64_t row0, int64_t column0, Matrix& out) {
    const auto steps = static_cast<int64_t>(streamed.size());
    cells_.assign(cells_.size(), {});
    int64_t cycles = 0;
    for (int64_t t = 0; t < rows_; ++t, ++cycles) {
      for (int64_t i = rows_ - 1; i > 0; --i) {
        for (int64_t j = 0; j < columns_; ++j) at(i, j).held = at(i - 1, j).held;
      }
      for (int64_t j = 0; j < columns_; ++j) at(0, j).held = word(held, row0 + rows_ - 1 - t, column0 + j);
    }
    for (int64_t t = 0; t < steps + rows_ + columns_ - 2; ++t, ++cycles) {
      move([&](int64_t row) { return word(streamed, t - row, row0 + row); }, [](int64_t) { return 0.0; });
      for (Cell& cell : cells_) cell.down += cell.right * cell.held;
      for (int64_t j = 0; j < columns_; ++j) {
        put(out, t - (rows_ - 1) - j, column0 + j, word(out, t - (rows_ - 1) - j, column0 + j) + at(rows_ - 1, j).down);
      }
    }
    return cycles;
  }

 private:
  Cell& at(int64_t row, int64_t column) { return cells_[static_cast<size_t>(row * columns_ + column)]; }

  static void put(Matrix& matrix, int64_t row, int64_t column, double value) {
    if (row < 0 || row >= static_cast<int64_t>(matrix.size())) return;
    if (column >= static_cast<int64_t>(matrix.front().size())) return;
    matrix[static_cast<size_t>(row)][static_cast<size_t>(column)] = value;
  }

  template <class Left, class Above>
  void move(Left left, Above above) {
    for (int64_t i = rows_ - 1; i >= 0; --i) {
      for (int64_t j = columns_ - 1; j >= 0; --j) {
        at(i, j).right = j > 0 ? at(i, j - 1).right : left(i);
        at(i, j).down = i > 0 ? at(i - 1, j).down : above(j);
      }
    }
  }

  int64_t rows_;
  int64_t columns_;
  std::vector<Cell> cells_;
};

Simulated simulate_cells(const SystolicArray& array, const Matrix& inputs, const Matrix& weights) {
  CellArray cells(array.rows, array.columns);
  const bool is = array.dataflow == Dataflow::input_stationary;
  const auto m = static_cast<int64_t>(inputs.size());
  const auto n = static_cast<int64_t>(weights.front().size());
  const SystolicProjection shape = project(array.dataflow, {.m = m, .n = n, .k = static_cast<int64_t>(weights.size())});
  // is: the same dataflow as ws with the transposed problem.
  Simulated result{.product =
                       Matrix(static_cast<size_t>(is ? n : m), std::vector<double>(static_cast<size_t>(is ? m : n)))};
  const Matrix streamed = is ? transposed(weights) : inputs;
  const Matrix held = is ? transposed(inputs) : weights;
  for (int64_t column = 0; column < shape.columns; column += array.columns) {
    for (int64_t row = 0; row < shape.rows; row += array.rows) {
      result.cycles += array.dataflow == Dataflow::output_stationary
                           ? cells.output_stationary_fold(inputs, weights, row, column, result.product)
                           : cells.stationary_fold(streamed, held, row, column, result.product);
    }
  }
  if (is) result.product = transposed(result.product);
  return result;
}

TEST(SystolicCompute, cycles_are_those_of_an_array_that_multiplies_cell_by_cell) {
  RandomStream random(7, "systolic cells");
  for (int trial = 0; trial < 60; ++trial) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
    const GemmSize gemm{.m = size(9), .n = size(9), .k = size(9)};
    SystolicArray array{.rows = size(4), .columns = size(4)};
    const Matrix inputs = small_numbers(random, gemm.m, gemm.k);
    const Matrix weights = small_numbers(random, gemm.k, gemm.n);
    for (const Dataflow dataflow : dataflows) {
      array.dataflow = dataflow;
      const Simulated simulated = simulate_cells(array, inputs, weights);
      for (int64_t i = 0; i < gemm.m; ++i) {
        for (int64_t j = 0; j < gemm.n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < gemm.k; ++k) sum += word(inputs, i, k) * word(weights, k, j);
          ASSERT_EQ(word(simulated.product, i, j), sum) << dataflow_name(dataflow);
        }
      }
      EXPECT_EQ(systolic_compute(array, gemm).cycles + 1, simulated.cycles) << dataflow_name(dataflow);
    }
  }
}

TEST(SystolicCompute, an_array_never_does_more_than_one_multiplication_per_cell_and_cycle) {
  RandomStream random(7, "systolic utilisation");
  for (int trial = 0; trial < 300; ++trial) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
    const GemmSize gemm{.m = size(1000), .n = size(1000), .k = size(1000)};
    for (const Dataflow dataflow : dataflows) {
      const SystolicArray array{.rows = size(64), .columns = size(64), .dataflow = dataflow};
      const SystolicCompute compute = systolic_compute(array, gemm);
      const auto cells = static_cast<double>(array.rows * array.columns);
      const auto macs = static_cast<double>(gemm.m * gemm.n * gemm.k);
      EXPECT_LE(macs, static_cast<double>(compute.cycles + 1) * cells);
      EXPECT_LE(compute.mapping_efficiency, 1);
      EXPECT_LE(compute.compute_utilisation, compute.mapping_efficiency);
      EXPECT_GE(compute.input_reads, gemm.m * gemm.k);
      EXPECT_GE(compute.weight_reads, gemm.k * gemm.n);
      EXPECT_GE(compute.output_writes, gemm.m * gemm.n);
    }
  }
}

TEST(SystolicCompute, sizes_below_one_and_beyond_exact_integers_are_refused) {
  EXPECT_THROW(systolic_compute({.rows = 0}, {}), InputError);
  EXPECT_THROW(systolic_compute({}, {.m = 4, .n = 4, .k = 4, .batch = 2}), InputError);
  EXPECT_THROW(systolic_compute({}, {.m = 4, .n = -1, .k = 4}), InputError);
  const int64_t huge = int64_t{1} << 30;
  EXPECT_THROW(systolic_compute({}, {.m = huge, .n = huge, .k = huge}), InputError);
  EXPECT_THROW(systolic_compute({}, {.m = std::numeric_limits<int64_t>::max(), .n = 1, .k = 1}), InputError);
  EXPECT_THROW(systolic_compute({.rows = 1, .columns = huge}, {.m = huge, .n = 1, .k = 1}), InputError);
}

}  // namespace foretoken::compute_test
