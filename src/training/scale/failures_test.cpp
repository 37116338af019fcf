#include "training/scale/failures.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::failures_test {

// Llama 3 405B: storage of 2 TB/s sustained (arXiv 2407.21783, section 3.3.1).
CheckpointPlan llama3_checkpoints(CheckpointMode mode) {
  return {.mode = mode,
          .bytes = 14 * 405e9,  // 16-bit and master weights, both moments of Adam
          .storage_bytes_per_second = 2e12,
          .interval_seconds = {}};
}

TEST(Failures, llama3_is_interrupted_every_three_hours) {
  const JobReliability job = job_reliability({}, {}, llama3_checkpoints(CheckpointMode::asynchronous), 16384);
  EXPECT_NEAR(job.mtbf_hours, 3.09, 0.01);
  EXPECT_NEAR(job.failures_per_day * 54, 419, 1e-6);
}

TEST(Failures, more_devices_fail_more_often_and_train_less_of_the_time) {
  const CheckpointPlan plan = llama3_checkpoints(CheckpointMode::asynchronous);
  double failures = 0, effective = 1;
  for (const int64_t devices : {8, 512, 4096, 16384, 100000}) {
    const JobReliability job = job_reliability({}, {}, plan, devices);
    const Goodput result = job_goodput(job, plan);
    EXPECT_GT(job.failures_per_day, failures);
    EXPECT_LT(result.effective, effective);
    failures = job.failures_per_day;
    effective = result.effective;
  }
}

TEST(Failures, faults_of_whole_groups_come_on_top_and_lose_host_memory) {
  const CheckpointPlan plan = llama3_checkpoints(CheckpointMode::in_memory);
  const FailureModel with_racks{.group_mtbf_hours = 20000, .group_devices = 32};
  const JobReliability alone = job_reliability({}, {}, plan, 4096);
  const JobReliability both = job_reliability(with_racks, {}, plan, 4096);
  EXPECT_NEAR(1 / both.mtbf_hours, 1 / alone.mtbf_hours + 4096.0 / 32 / 20000, 1e-12);
  EXPECT_TRUE(both.conditions.recoveries.back().from_storage);
  EXPECT_LT(job_goodput(both, plan).effective, job_goodput(alone, plan).effective);
}

TEST(Failures, more_spares_are_missing_less_often) {
  const CheckpointPlan plan = llama3_checkpoints(CheckpointMode::asynchronous);
  double missing = 1, effective = 0;
  for (const int64_t spares : {0, 2, 4, 8, 16}) {
    const JobReliability job = job_reliability({}, {.spare_devices = spares}, plan, 16384);
    EXPECT_LE(job.no_spare_probability, missing);
    const double now = job_goodput(job, plan).effective;
    EXPECT_GT(now, effective);
    missing = job.no_spare_probability;
    effective = now;
  }
  EXPECT_LT(missing, 1);
}

TEST(Failures, an_interval_shorter_than_the_write_is_refused) {
  CheckpointPlan plan = llama3_checkpoints(CheckpointMode::asynchronous);
  plan.storage_bytes_per_second = 5e9;
  plan.interval_seconds = 60;
  EXPECT_THROW(job_goodput(job_reliability({}, {}, plan, 1024), plan), InputError);
}

TEST(Checkpoints, less_of_a_checkpoint_blocks_when_more_of_it_is_behind_the_work) {
  const double blocking = checkpoint_seconds(llama3_checkpoints(CheckpointMode::blocking), 16384).blocking;
  const CheckpointSeconds behind = checkpoint_seconds(llama3_checkpoints(CheckpointMode::asynchronous), 16384);
  const CheckpointSeconds memory = checkpoint_seconds(llama3_checkpoints(CheckpointMode::in_memory), 16384);
  EXPECT_GT(blocking, behind.blocking);
  EXPECT_EQ(behind.lag, blocking);
  EXPECT_LT(memory.lag, behind.lag);
  EXPECT_LT(memory.reload, behind.reload);
}

TEST(Checkpoints, storage_is_as_fast_as_its_nodes_and_its_servers_allow) {
  EXPECT_EQ(storage_bytes_per_second(2e9, 100), 200e9);
  EXPECT_EQ(storage_bytes_per_second(2e9, 100, 50e9), 50e9);
}

TEST(Checkpoints, names_of_modes_are_read_back) {
  for (const std::string& name : checkpoint_mode_names()) {
    EXPECT_EQ(checkpoint_mode_name(*checkpoint_mode_from_name(name)), name);
  }
  EXPECT_FALSE(checkpoint_mode_from_name("never"));
}

}  // namespace foretoken::failures_test
