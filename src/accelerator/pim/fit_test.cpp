#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "accelerator/pim/prim_benchmarks.h"
#include "accelerator/pim/test_fit.h"
#include "base/statistics.h"

namespace foretoken::fit_test {

using namespace pim_fit;

PimDevice upmem_device() {
  return read_pim_device(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators" / "pim" / "upmem.json");
}

TEST(RelativeFit, a_line_is_found_again_and_one_outlier_does_not_move_it) {
  std::vector<RelativeFitRow> rows;
  for (int x = 1; x <= 12; ++x) rows.push_back({{1, static_cast<double>(x)}, 2 + 3.0 * x});
  rows[5].measured *= 3;
  const std::vector<double> fitted = fit_relative(rows);
  EXPECT_NEAR(fitted[0], 2, 0.05);
  EXPECT_NEAR(fitted[1], 3, 0.02);
}

TEST(RelativeFit, coefficients_never_fall_below_zero) {
  std::vector<RelativeFitRow> rows;
  for (int x = 2; x <= 9; ++x) rows.push_back({{1, static_cast<double>(x), 0}, 2.0 * x - 1});
  const std::vector<double> fitted = fit_relative(rows);
  EXPECT_EQ(fitted[0], 0);
  EXPECT_GT(fitted[1], 1);
  EXPECT_EQ(fitted[2], 0);  // no row speaks of it
}

// Rows made by the model itself: the fit finds its constants again.
TEST(PimFit, constants_that_made_the_rows_are_found_again) {
  const PimDevice device = upmem_device();
  std::vector<PrimRow> rows;
  for (const char* name : {"VA", "RED", "BS"}) {
    for (const int64_t dpus : {1, 4, 16, 64}) {
      for (const int64_t size : {65536, 131072, 262144, 524288}) {
        const PimEstimate made = estimate_pim(device, *prim_kernel(device, name, size, dpus));
        rows.push_back({.row = rows.size() + 1,
                        .benchmark = name,
                        .dpus = dpus,
                        .size = size,
                        .kernel = Seconds(made.kernel.value),
                        .to_dpus = Seconds(made.to_dpus.value),
                        .from_dpus = Seconds(made.from_dpus.value),
                        .between_dpus = Seconds(made.between_dpus.value)});
      }
    }
  }
  PimDevice blank = device;
  for (auto& [name, program] : blank.programs) program = {};
  const PimDevice fitted = fit_pim_device(blank, rows);
  for (const char* name : {"VA", "RED", "BS"}) {
    const double instructions = device.programs.at(name).instructions_per_element;
    EXPECT_NEAR(fitted.programs.at(name).instructions_per_element, instructions, 0.01 * instructions) << name;
  }
  const double rate = device.transfer(PimTransferKind::broadcast).rate(16).value();
  EXPECT_NEAR(fitted.transfer(PimTransferKind::broadcast).rate(16).value(), rate, 0.05 * rate);
  EXPECT_EQ(fitted.programs.at("TS").instructions_per_element, 0);  // no row speaks of it
}

class MeasuredPrimNeedsData : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("FORETOKEN_DATA");
    if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    rows_ = read_prim_rows(std::filesystem::path(data) / "upmem" / "prim_upmem.csv");
    ASSERT_FALSE(rows_.empty());
  }

  struct Errors {
    double kernel, to_dpus, from_dpus;
  };

  // Mean errors of rows that were left out of the fit together with their like.
  Errors left_out_errors(const std::function<bool(const PrimRow&, const PrimRow&)>& alike) const {
    std::vector<double> kernel, to_dpus, from_dpus;
    for (const PrimRow& row : rows_) {
      std::vector<PrimRow> others;
      for (const PrimRow& other : rows_) {
        if (!alike(row, other)) others.push_back(other);
      }
      const PimDevice device = fit_pim_device(upmem_device(), others);
      const PimEstimate own = estimate_pim(device, *prim_kernel(device, row.benchmark, row.size, row.dpus));
      kernel.push_back(std::abs(own.kernel.value / row.kernel.value() - 1));
      to_dpus.push_back(std::abs(own.to_dpus.value / row.to_dpus.value() - 1));
      from_dpus.push_back(std::abs(own.from_dpus.value / row.from_dpus.value() - 1));
    }
    return {mean(kernel), mean(to_dpus), mean(from_dpus)};
  }

  std::vector<PrimRow> rows_;
};

TEST_F(MeasuredPrimNeedsData, the_shipped_constants_are_what_the_fit_gives) {
  const PimDevice shipped = upmem_device();
  const PimDevice fitted = fit_pim_device(shipped, rows_);
  for (const auto& [name, program] : shipped.programs) {
    const PimProgram& own = fitted.programs.at(name);
    EXPECT_NEAR(own.instructions_per_element / program.instructions_per_element, 1, 1e-3) << name;
    EXPECT_NEAR(own.setup / program.setup, 1, 1e-3) << name;
  }
  for (size_t kind = 0; kind < shipped.transfers.size(); ++kind) {
    for (const double dpus : {1.0, 4.0, 16.0, 64.0}) {
      EXPECT_NEAR(fitted.transfers[kind].rate(dpus) / shipped.transfers[kind].rate(dpus), 1, 1e-3)
          << pim_transfer_kind_names[kind];
    }
  }
}

TEST_F(MeasuredPrimNeedsData, the_shipped_intervals_hold_ninety_percent_of_rows_that_were_left_out) {
  const PimDevice shipped = upmem_device();
  const PimDevice fitted = with_fitted_intervals(fit_pim_device(shipped, rows_), rows_);
  constexpr double shipped_digits = 0.005;  // the file has two decimals
  for (const auto& [name, program] : shipped.programs) {
    EXPECT_NEAR(fitted.programs.at(name).relative_error, program.relative_error, shipped_digits) << name;
  }
  for (size_t kind = 0; kind < shipped.transfers.size(); ++kind) {
    EXPECT_NEAR(fitted.transfers[kind].relative_error, shipped.transfers[kind].relative_error, shipped_digits)
        << pim_transfer_kind_names[kind];
  }
}

// Measured: kernels 1.0% (uPIMulator 24.8%), results 10%. Inputs are 21% off, the aim of 20% not met: runs that send
// the same bytes to as many DPUs lie up to 2.3 times apart.
TEST_F(MeasuredPrimNeedsData, sizes_that_the_fit_has_not_seen_are_predicted) {
  const Errors errors = left_out_errors([](const PrimRow& row, const PrimRow& other) {
    return row.benchmark == other.benchmark && row.size == other.size;
  });
  EXPECT_LT(errors.kernel, 0.02);
  EXPECT_LT(errors.from_dpus, 0.12);
  EXPECT_LT(errors.to_dpus, 0.23);
}

// Measured: kernels 1.1%. Transfers are no better than 24% (results) and 57% (inputs) then.
TEST_F(MeasuredPrimNeedsData, kernels_on_numbers_of_dpus_that_the_fit_has_not_seen_are_predicted) {
  const Errors errors =
      left_out_errors([](const PrimRow& row, const PrimRow& other) { return row.dpus == other.dpus; });
  EXPECT_LT(errors.kernel, 0.02);
}

}  // namespace foretoken::fit_test
