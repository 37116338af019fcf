#include "accelerator/pim/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "accelerator/pim/prim_benchmarks.h"
#include "base/error.h"

namespace foretoken::pim_estimate_test {

PimDevice upmem() {
  return read_pim_device(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators" / "pim" / "upmem.json");
}

PimKernel streaming_kernel() {
  return {.elements_per_dpu = 1 << 20, .instructions_per_element = 10, .read_per_element = Bytes(8)};
}

TEST(PimEstimate, eleven_tasklets_reach_the_full_rate_of_the_pipeline) {
  const PimDevice device = upmem();
  PimKernel kernel = streaming_kernel();
  double before = 1e300;
  for (int64_t tasklets = 1; tasklets <= 24; ++tasklets) {
    kernel.tasklets = tasklets;
    const double cycles = estimate_pim(device, kernel).pipeline_cycles;
    EXPECT_LE(cycles, before);
    if (tasklets >= 11) {
      EXPECT_NEAR(cycles, 10.0 * (1 << 20), 0.01 * cycles);  // one instruction a cycle
    } else {
      EXPECT_GT(cycles, 10.5 * (1 << 20));
    }
    before = cycles;
  }
  kernel.tasklets = 1;
  EXPECT_DOUBLE_EQ(estimate_pim(device, kernel).pipeline_cycles, 11 * 10.0 * (1 << 20));
}

TEST(PimEstimate, a_last_block_that_one_thread_has_alone_keeps_the_others_waiting) {
  const PimDevice device = upmem();
  PimKernel kernel = streaming_kernel();
  kernel.tasklets = 11;
  kernel.elements_per_dpu = 11 * 128;  // one block of 1024 bytes each
  const double even = estimate_pim(device, kernel).pipeline_cycles;
  kernel.elements_per_dpu = 12 * 128;
  EXPECT_NEAR(estimate_pim(device, kernel).pipeline_cycles, 2 * even, 1e-6 * even);
}

TEST(PimEstimate, a_kernel_takes_the_longer_of_instructions_and_memory) {
  const PimDevice device = upmem();
  PimKernel kernel = streaming_kernel();
  const Seconds cycle(1 / device.clock.value.value());
  // 8 bytes at half a cycle each and the setup of 77 cycles per 1024 bytes.
  EXPECT_NEAR(estimate_pim(device, kernel).dma_cycles, (8 * 0.5 + 8 * 77 / 1024.0) * (1 << 20), 1);
  EXPECT_FALSE(estimate_pim(device, kernel).memory_bound());
  EXPECT_NEAR(estimate_pim(device, kernel).kernel.value, 10 * (1 << 20) * cycle.value(), 1e-9);
  kernel.read_per_element = Bytes(80);
  const PimEstimate slow = estimate_pim(device, kernel);
  EXPECT_TRUE(slow.memory_bound());
  EXPECT_NEAR(slow.kernel.value, slow.dma_cycles * cycle.value(), 1e-9);
}

TEST(PimEstimate, no_benchmark_is_faster_on_more_data_or_slower_on_more_dpus) {
  const PimDevice device = upmem();
  for (const std::string& name : prim_benchmark_names()) {
    // Of TRNS a size makes 64 columns of tiles, but on one DPU a single one: another problem.
    const int64_t fewest = name == "TRNS" ? 4 : 1;
    PimEstimate smaller{};
    for (const int64_t size : {1024, 1500, 2048, 4096}) {
      const PimEstimate own = estimate_pim(device, *prim_kernel(device, name, size, fewest));
      EXPECT_GE(own.kernel.value, smaller.kernel.value) << name;  // equal where threads were idle
      EXPECT_GE(own.to_dpus.value, smaller.to_dpus.value) << name;
      EXPECT_GE(own.from_dpus.value, smaller.from_dpus.value) << name;
      EXPECT_GE(own.between_dpus.value, smaller.between_dpus.value) << name;
      smaller = own;
      double before = 1e300;
      for (int64_t dpus = fewest; dpus <= 64; dpus *= 2) {
        const double kernel = estimate_pim(device, *prim_kernel(device, name, size, dpus)).kernel.value;
        EXPECT_LE(kernel, before * (1 + 1e-12)) << name << " " << dpus;
        before = kernel;
      }
    }
  }
}

TEST(PimEstimate, inputs_that_leave_the_cache_take_longer_per_byte) {
  const PimDevice device = upmem();
  const auto seconds_per_element = [&](int64_t size) {
    return estimate_pim(device, *prim_kernel(device, "VA", size, 16)).to_dpus.value / static_cast<double>(size);
  };
  EXPECT_GT(seconds_per_element(4'000'000), 1.5 * seconds_per_element(1'000'000));
}

TEST(PimEstimate, a_total_is_the_sum_of_its_phases_and_intervals_hold_their_values) {
  const PimDevice device = upmem();
  for (const std::string& name : prim_benchmark_names()) {
    const PimEstimate own = estimate_pim(device, *prim_kernel(device, name, 2048, 16));
    EXPECT_DOUBLE_EQ(own.total().value,
                     own.kernel.value + own.to_dpus.value + own.from_dpus.value + own.between_dpus.value);
    for (const Estimate& part : {own.kernel, own.to_dpus, own.from_dpus, own.total()}) {
      EXPECT_LT(part.low, part.value) << name;
      EXPECT_GT(part.high, part.value) << name;
      EXPECT_GT(part.low, 0) << name;
    }
  }
}

TEST(PimEstimate, only_runs_like_the_measured_ones_are_interpolated) {
  const PimDevice device = upmem();
  const auto estimate = [&](const char* name, int64_t size, int64_t dpus) {
    return estimate_pim(device, *prim_kernel(device, name, size, dpus));
  };
  const auto width = [](const Estimate& own) { return std::log(own.high / own.low); };
  const PimEstimate inside = estimate("RED", 1 << 20, 64);
  EXPECT_EQ(inside.kernel.kind, Confidence::interpolated);
  EXPECT_EQ(inside.to_dpus.kind, Confidence::interpolated);
  EXPECT_EQ(inside.from_dpus.kind, Confidence::interpolated);
  // As many elements on each of more DPUs than were measured.
  const PimEstimate wide = estimate("RED", 1 << 21, 128);
  for (const auto& [own, other] : {std::pair(inside.kernel, wide.kernel), std::pair(inside.to_dpus, wide.to_dpus),
                                   std::pair(inside.from_dpus, wide.from_dpus)}) {
    EXPECT_EQ(other.kind, Confidence::extrapolated);
    EXPECT_NEAR(width(other), 2 * width(own), 1e-9);
  }
  for (const int64_t size : {1 << 12, 1 << 28}) {
    const PimEstimate own = estimate("RED", size, 64);
    EXPECT_EQ(own.kernel.kind, Confidence::extrapolated) << size;
    EXPECT_NEAR(width(own.kernel), 2 * width(inside.kernel), 1e-9) << size;
    EXPECT_EQ(own.to_dpus.kind, Confidence::interpolated) << size;
  }
  // Nobody has run it.
  const PimEstimate assumed = estimate("TS", 1 << 20, 64);
  EXPECT_EQ(assumed.kernel.kind, Confidence::extrapolated);
  EXPECT_EQ(assumed.to_dpus.kind, Confidence::extrapolated);
  EXPECT_NEAR(width(assumed.to_dpus), 2 * width(inside.to_dpus), 1e-9);
}

TEST(PimEstimate, what_the_machine_does_not_have_is_refused) {
  const PimDevice device = upmem();
  const auto refuses = [&](void (*change)(PimKernel&)) {
    PimKernel kernel = streaming_kernel();
    change(kernel);
    EXPECT_THROW(estimate_pim(device, kernel), InputError);
  };
  refuses([](PimKernel& kernel) { kernel.dpus = 100'000; });
  refuses([](PimKernel& kernel) { kernel.dpus = 0; });
  refuses([](PimKernel& kernel) { kernel.tasklets = 25; });
  refuses([](PimKernel& kernel) { kernel.resident_per_dpu = Bytes(65 * mebi); });
  refuses([](PimKernel& kernel) { kernel.block = Bytes(4096); });
  EXPECT_FALSE(prim_kernel(device, "NW", 1024, 1));
}

}  // namespace foretoken::pim_estimate_test
