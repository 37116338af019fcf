// Where the nonzeros of a tensor lie, as far as tiles can tell: how many a tile holds and how often it holds none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "accelerator/sparse/nonzero_matrix.h"

namespace foretoken {

// A tile is given by its extents along the tensor's ranks, and stands for all tiles of that size.
class DensityModel {
 public:
  virtual ~DensityModel() = default;
  virtual double mean_nonzeros(std::span<const double> extents) const = 0;
  virtual double most_nonzeros(std::span<const double> extents) const = 0;
  virtual double empty_probability(std::span<const double> extents) const = 0;
};

// Every word is a nonzero.
std::unique_ptr<DensityModel> make_dense();

// `density` of a tensor's words, anywhere in it: nonzeros of a tile are hypergeometric (Wu et al., Sparseloop, MICRO
// 2022, section 5.3.2).
std::unique_ptr<DensityModel> make_uniform_density(double density, double tensor_words);

// Every tile holds its share, rounded up or down so that the mean is right: what Timeloop calls fixed-structured.
std::unique_ptr<DensityModel> make_even_density(double density);

// N:M pruning: of every `block` words in a row along `rank`, exactly `nonzeros` are not zero, any of them. Tiles start
// where blocks do.
std::unique_ptr<DensityModel> make_structured_density(int nonzeros, int block, int rank);

// A matrix whose word (i, j) is a nonzero where |i - j| <= half_width; the last two ranks are its rows and columns,
// ranks before them repeat it.
std::unique_ptr<DensityModel> make_banded_density(int64_t rows, int64_t columns, int64_t half_width);
constexpr int64_t max_banded_rows = int64_t{1} << 22;

// A tensor of two ranks whose nonzeros are known.
std::unique_ptr<DensityModel> make_measured_density(NonzeroMatrix matrix);

}  // namespace foretoken
