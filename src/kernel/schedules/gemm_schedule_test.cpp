#include "kernel/schedules/gemm_schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"

namespace foretoken::gemm_schedule_test {

Device device(const std::string& name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

TEST(GemmSchedule, slices_beyond_the_shared_memory_are_left_out) {
  const Device h200 = device("h200_sxm");
  EXPECT_FALSE(schedule_time({.m = 4096, .n = 4096, .k = 4096}, {.bm = 256, .bn = 256, .bk = 128, .stages = 4}, h200));
  EXPECT_TRUE(schedule_time({.m = 4096, .n = 4096, .k = 4096}, {.bm = 256, .bn = 128, .bk = 64, .stages = 4}, h200));
}

TEST(GemmSchedule, no_schedule_beats_the_roofline) {
  const Device h200 = device("h200_sxm");
  for (const int64_t m : {1, 64, 1000, 8192}) {
    const GemmShape shape{.m = m, .n = 8192, .k = 8192};
    const double flops = 2.0 * static_cast<double>(shape.m * shape.n * shape.k);
    const double bytes = 2.0 * static_cast<double>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
    for (const RankedSchedule& one : rank_schedules(shape, usual_schedules(), h200)) {
      EXPECT_GT(one.time.seconds, flops / 989e12) << m;
      EXPECT_GT(one.time.seconds, bytes / 4.8e12) << m;
    }
  }
}

TEST(GemmSchedule, few_rows_want_low_tiles_and_large_products_large_ones) {
  const Device h200 = device("h200_sxm");
  const auto best = [&](const GemmShape& shape) { return rank_schedules(shape, usual_schedules(), h200).front(); };
  EXPECT_EQ(best({.m = 16, .n = 4096, .k = 4096}).schedule.bm, 16);
  const GemmSchedule large = best({.m = 8192, .n = 8192, .k = 8192}).schedule;
  EXPECT_GE(large.bm * large.bn, 128 * 128);
}

TEST(GemmSchedule, devices_and_formats_that_were_not_measured_are_refused) {
  EXPECT_THROW(rank_schedules({}, usual_schedules(), device("a100_sxm")), InputError);
  EXPECT_THROW(rank_schedules({}, usual_schedules(), device("b200_sxm")), InputError);
  EXPECT_THROW(rank_schedules({.scheme = Scheme::fp8}, usual_schedules(), device("h200_sxm")), InputError);
}

}  // namespace foretoken::gemm_schedule_test
