#include "accelerator/sparse/density.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace foretoken::density_test {

using Extents = std::array<double, 2>;

// Tiles of a matrix of 8 x 8 that divide it.
constexpr std::array<Extents, 6> tiles_of_8{{{1, 1}, {1, 4}, {2, 2}, {4, 1}, {4, 8}, {8, 8}}};

NonzeroMatrix matrix_of(int side, auto&& is_nonzero) {
  NonzeroMatrix matrix{.rows = side, .columns = side};
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      if (is_nonzero(row, column)) matrix.places.push_back({row, column});
    }
  }
  return matrix;
}

void expect_laws(const DensityModel& model, double density) {
  for (const Extents& tile : tiles_of_8) {
    const double words = tile[0] * tile[1];
    EXPECT_NEAR(model.mean_nonzeros(tile), density * words, 1e-9);
    EXPECT_GE(model.most_nonzeros(tile), model.mean_nonzeros(tile) - 1e-9);
    EXPECT_LE(model.most_nonzeros(tile), words);
    const double empty = model.empty_probability(tile);
    EXPECT_GE(empty, 0);
    // Nonzeros are in tiles that are not empty, at least one and at most all words of each.
    EXPECT_LE(1 - empty, model.mean_nonzeros(tile) + 1e-9);
    EXPECT_GE((1 - empty) * model.most_nonzeros(tile), model.mean_nonzeros(tile) - 1e-9);
  }
  EXPECT_NEAR(model.empty_probability(Extents{1, 1}), 1 - density, 1e-12);
}

TEST(Density, every_model_keeps_its_mean_and_its_bounds) {
  expect_laws(*make_dense(), 1);
  for (const double density : {0.0, 0.125, 0.5, 1.0}) {
    expect_laws(*make_uniform_density(density, 64), density);
    expect_laws(*make_even_density(density), density);
  }
  expect_laws(*make_structured_density(2, 4, 1), 0.5);
  expect_laws(*make_structured_density(1, 4, 0), 0.25);
  expect_laws(*make_banded_density(8, 8, 1), 22.0 / 64);
  expect_laws(*make_measured_density(matrix_of(8, [](int row, int column) { return (row * 3 + column) % 4 == 0; })),
              0.25);
}

TEST(Density, uniform_tiles_are_empty_as_often_as_drawings_without_putting_back_say) {
  // 4 of 8 words are nonzeros: two words miss them in 4/8 * 3/7 of all cases.
  const auto model = make_uniform_density(0.5, 8);
  EXPECT_NEAR(model->empty_probability(Extents{1, 2}), 3.0 / 14, 1e-15);
  EXPECT_EQ(model->empty_probability(Extents{1, 5}), 0);
}

TEST(Density, empty_tiles_of_large_tensors_follow_the_law_of_rare_events) {
  constexpr double words = 1e12;
  const auto model = make_uniform_density(1e-6, words);
  EXPECT_NEAR(model->empty_probability(Extents{1000, 1000}), std::exp(-1), 1e-6);
  EXPECT_NEAR(model->empty_probability(Extents{1000, 3}), std::pow(1 - 1e-6, 3000), 1e-9);
  EXPECT_EQ(model->empty_probability(Extents{1e6, 1e4}), 0);
}

TEST(Density, the_sum_of_logarithms_continues_the_product) {
  // On both sides of the number of factors from which the sum is used.
  const auto model = make_uniform_density(0.001, 1e7);
  const double below = model->empty_probability(Extents{1, 4096}), above = model->empty_probability(Extents{1, 4097});
  EXPECT_NEAR(above / below, 1 - 0.001, 1e-6);
}

TEST(Density, larger_tiles_are_less_often_empty) {
  for (const auto& model : {make_uniform_density(0.1, 4096), make_even_density(0.1), make_banded_density(64, 64, 3)}) {
    double before = 1;
    for (const double side : {1.0, 2.0, 4.0, 8.0, 16.0, 64.0}) {
      const double empty = model->empty_probability(Extents{side, side});
      EXPECT_LE(empty, before);
      before = empty;
    }
  }
}

TEST(Density, structured_blocks_hold_exactly_their_nonzeros) {
  const auto model = make_structured_density(2, 4, 1);
  EXPECT_EQ(model->empty_probability(Extents{1, 4}), 0);
  EXPECT_EQ(model->most_nonzeros(Extents{3, 8}), 12);
  EXPECT_NEAR(model->empty_probability(Extents{1, 2}), 1.0 / 6, 1e-15);  // both nonzeros in the other half
  EXPECT_NEAR(model->empty_probability(Extents{2, 2}), 1.0 / 36, 1e-15);
  EXPECT_EQ(model->empty_probability(Extents{1, 3}), 0);
}

TEST(Density, a_band_is_what_its_matrix_measures) {
  for (const int half_width : {0, 1, 3, 20}) {
    const auto banded = make_banded_density(12, 12, half_width);
    const auto measured =
        make_measured_density(matrix_of(12, [&](int row, int column) { return std::abs(row - column) <= half_width; }));
    for (const Extents& tile : {Extents{1, 1}, Extents{2, 3}, Extents{3, 2}, Extents{4, 4}, Extents{5, 7}}) {
      EXPECT_NEAR(banded->mean_nonzeros(tile), measured->mean_nonzeros(tile), 1e-9) << half_width;
      EXPECT_EQ(banded->empty_probability(tile), measured->empty_probability(tile)) << half_width;
      EXPECT_EQ(banded->most_nonzeros(tile), measured->most_nonzeros(tile)) << half_width << " " << tile[0];
    }
  }
}

}  // namespace foretoken::density_test
