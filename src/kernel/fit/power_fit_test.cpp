#include "kernel/fit/power_fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "kernel/test_support.h"

namespace foretoken::fit_power_fit_test {

const Device& h200() {
  static const Device device = test_support::hardware().device("h200_sxm");
  return device;
}

PowerCalibration some_board() {
  PowerCalibration c{
      .device = "h200_sxm", .limit_watts = 700, .bandwidth = 4.8e12, .idle_watts = 110, .limit_share = 1};
  const auto facts = power_constant_facts();
  for (size_t k = 0; k < facts.size(); ++k) c.constants[k] = facts[k].start;
  c.constants[flop_joules] *= 1.3;
  c.constants[byte_joules] *= 0.8;
  c.constants[busy_watts] *= 1.2;
  return c;
}

constexpr int row_count = 14;

// Kernels of a board that follows the law, without noise.
std::vector<SustainedRow> lawful_rows(const PowerCalibration& board) {
  const PowerModel model = PowerModel::make(h200(), {&board, 1}).value();
  std::vector<SustainedRow> rows;
  RandomStream random(1, "rows");
  for (int i = 0; i < row_count; ++i) {
    const int64_t m = int64_t{1} << random.below(14), n = 1024 * (1 + static_cast<int64_t>(random.below(28)));
    SustainedCall call{.shape = GemmShape{.m = m, .n = n, .k = 4096}};
    if (i % 3 == 0) call.shape = NormShape{.rows = m, .width = n};
    const Work work = count_work(call.shape);
    const double seconds =
        (3e-6 + std::max(work.flops.value() / 8e14, work.bytes().value() / 4.2e12)) * (1 + 0.5 * random.uniform());
    SustainedRow row{.name = "row " + std::to_string(i), .burst = Seconds(seconds), .idle = Watts(board.idle_watts)};
    row.calls.push_back(call);
    const SustainedPower power = model.sustained(busy_kernels(row, h200(), {}));
    row.sustained = Seconds(seconds * power.slowdown.value);
    row.power = Watts(power.watts.value);
    row.clock = power.clock;
    rows.push_back(row);
  }
  return rows;
}

TEST(PowerFit, rows_that_follow_the_law_are_predicted_when_left_out) {
  const PowerFit fit = fit_power(h200(), lawful_rows(some_board()), {});
  ASSERT_EQ(fit.left_out.size(), size_t{row_count});
  double watts = 0, slowdown = 0;
  for (const PowerCheck& check : fit.left_out) {
    watts += std::abs(check.predicted.watts.value / check.measured_watts - 1) / row_count;
    slowdown += std::abs(check.predicted.slowdown.value - check.measured_slowdown) / row_count;
  }
  EXPECT_LT(watts, 0.03);
  EXPECT_LT(slowdown, 0.01);
}

TEST(PowerFit, too_few_rows_are_refused) {
  std::vector<SustainedRow> rows = lawful_rows(some_board());
  rows.resize(5);
  EXPECT_THROW(fit_power(h200(), rows, {}), InputError);
}

TEST(PowerFit, the_shares_of_a_mix_add_up_to_what_was_measured) {
  SustainedRow row{.burst = Seconds(5e-3), .sustained = Seconds(6e-3)};
  row.pause = Seconds(1e-3);
  for (const int64_t m : {16, 512, 4096}) row.calls.push_back({.shape = GemmShape{.m = m, .n = 4096, .k = 4096}});
  double sum = 0;
  for (const BusyKernel& kernel : busy_kernels(row, h200(), [](const SustainedCall& call) {
         return static_cast<double>(std::get<GemmShape>(call.shape).m);
       })) {
    sum += kernel.burst_seconds.value();
  }
  EXPECT_NEAR(sum, 4e-3, 1e-12);
}

class SustainedTable : public test_support::TestWithFolder {
 protected:
  std::filesystem::path write(const std::string& rows) const {
    const auto path = folder / "sustained.csv";
    write_file(path, "name,family,shape,burst_us,sustained_us,power_w,sm_clock_mhz,idle_w\n" + rows);
    return path;
  }
};

TEST_F(SustainedTable, a_row_of_several_families_finds_the_family_of_each_call) {
  const auto rows = read_sustained_rows(write(
      "layer,norm+gemm+pause,kernel=torch_eager dtype=bf16 rows=64 width=4096 op=rms residual=no; kernel=torch_linear "
      "dtype=bf16 m=64 n=6144 k=4096; us=20,100,110,650,1980,120\n"));
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].calls.size(), 2u);
  EXPECT_EQ(std::get<NormShape>(rows[0].calls[0].shape).rows, 64);
  EXPECT_EQ(std::get<GemmShape>(rows[0].calls[1].shape).n, 6144);
  EXPECT_EQ(rows[0].calls[1].variant, "torch_linear");
  EXPECT_NEAR(rows[0].pause.value(), 20e-6, 1e-12);
}

TEST_F(SustainedTable, copies_and_grouped_multiplies_are_the_kernels_they_are) {
  const auto rows = read_sustained_rows(write(
      "c,copy,bytes=1024,10,10,400,1980,120\n"
      "g,grouped_gemm,kernel=scaled_grouped_mm_row dtype=fp8 groups=8 m=64 n=128 k=256 routing=balanced,10,10,400,1980,"
      "120\n"));
  EXPECT_EQ(count_work(rows[0].calls[0].shape).bytes().value(), 2048);
  EXPECT_EQ(count_work(rows[1].calls[0].shape).flops.value(), 2.0 * 64 * 128 * 256);
}

TEST_F(SustainedTable, broken_rows_are_named) {
  for (const char* bad : {"a,gemm,m=1,10,10,400,1980,120\n", "a,gemm,dtype=bf16 m=x n=1 k=1,10,10,400,1980,120\n",
                          "a,unheard_of,m=1,10,10,400,1980,120\n", "a,pause,us=100,100,100,400,1980,120\n",
                          "a,copy,,10,10,400,1980,120\n", "a,copy,bytes=16,10,10,nan,1980,120\n",
                          "a,copy,bytes=16,-1,10,400,1980,120\n"}) {
    EXPECT_THROW(read_sustained_rows(write(bad)), InputError) << bad;
  }
}

}  // namespace foretoken::fit_power_fit_test
