#include "kernel/forms/sparse_form.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"
#include "model/work.h"

namespace foretoken::sparse_form_test {

using namespace test_support;

double seconds(const SparseShape& shape, const char* device = "h200_sxm") {
  const std::unique_ptr<Form> form = shape.product == SparseProduct::spmm ? make_spmm_form() : make_sddmm_form();
  return form_seconds(*form, {.shape = shape, .variant = {}}, traits_named(device), start_constants(*form));
}

SparseShape random_shape(RandomStream& random) {
  const auto size = [&](int least, int octaves) {
    return int64_t{1} << (least + static_cast<int>(random.below(static_cast<uint64_t>(octaves))));
  };
  SparseShape shape{.product = random.below(2) == 0 ? SparseProduct::spmm : SparseProduct::sddmm,
                    .pattern = static_cast<SparsePattern>(random.below(3)),
                    .rows = size(10, 11),
                    .features = size(3, 7)};
  shape.columns = shape.rows;
  shape.nonzeros = shape.rows * size(1, 6);
  shape.longest_row = std::min(shape.columns, 4 * shape.nonzeros / shape.rows);
  return shape;
}

TEST(SparseForm, more_nonzeros_features_or_columns_are_never_faster) {
  RandomStream random(1, "sparse");
  for (int i = 0; i < 300; ++i) {
    const SparseShape shape = random_shape(random);
    const double base = seconds(shape);
    SparseShape larger = shape;
    larger.nonzeros *= 2;
    EXPECT_GE(seconds(larger), base * 0.999);
    larger = shape;
    larger.features *= 2;
    EXPECT_GE(seconds(larger), base * 0.999);
    larger = shape;
    larger.columns *= 4;
    EXPECT_GE(seconds(larger), base * 0.999);
  }
}

TEST(SparseForm, neighbors_that_lie_near_are_faster_and_a_larger_cache_helps_those_that_do_not) {
  SparseShape shape{.rows = 1 << 20, .columns = 1 << 20, .nonzeros = 1 << 25, .features = 64, .longest_row = 60};
  for (const SparseProduct product : {SparseProduct::spmm, SparseProduct::sddmm}) {
    shape.product = product;
    shape.pattern = SparsePattern::uniform;
    const double anywhere = seconds(shape);
    shape.pattern = SparsePattern::band;
    EXPECT_LT(seconds(shape), 0.8 * anywhere);
  }
  EXPECT_EQ(sparse_hit_share(SparsePattern::uniform, 4e6, 1e6), 0.25);
  EXPECT_GT(sparse_hit_share(SparsePattern::power, 4e6, 1e6), 0.5);
  EXPECT_EQ(sparse_hit_share(SparsePattern::band, 4e6, 1e6), 1);
  EXPECT_EQ(sparse_hit_share(SparsePattern::uniform, 1e6, 4e6), 1);
}

TEST(SparseForm, one_long_row_holds_an_sddmm_up) {
  SparseShape shape{.product = SparseProduct::sddmm,
                    .pattern = SparsePattern::power,
                    .rows = 1 << 16,
                    .columns = 1 << 16,
                    .nonzeros = 1 << 20,
                    .features = 32,
                    .longest_row = 100};
  const double even = seconds(shape);
  shape.longest_row = 20'000;
  EXPECT_GT(seconds(shape), 1.5 * even);
}

TEST(SparseForm, rows_that_do_not_start_on_16_bytes_are_slower) {
  SparseShape shape{.rows = 1 << 16, .columns = 1 << 16, .nonzeros = 1 << 21, .features = 64, .longest_row = 60};
  SparseShape odd = shape;
  odd.features = 63;
  EXPECT_GT(seconds(odd), 1.05 * seconds(shape));
}

}  // namespace foretoken::sparse_form_test
