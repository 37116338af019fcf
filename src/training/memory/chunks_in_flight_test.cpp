#include "training/memory/chunks_in_flight.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken::chunks_in_flight_test {

int64_t in_flight(std::string_view schedule, int64_t stages, int64_t virtual_stages, int64_t micro_batches,
                  int64_t stage) {
  return chunks_in_flight(schedule,
                          {.stages = stages, .virtual_stages = virtual_stages, .micro_batches = micro_batches}, stage);
}

TEST(ChunksInFlight, are_all_in_gpipe_and_as_many_as_stages_follow_in_1f1b) {
  for (int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(in_flight("gpipe", 8, 1, 32, stage), 32);
    EXPECT_EQ(in_flight("1f1b", 8, 1, 32, stage), 8 - stage);
  }
}

// arXiv 2205.05198, section 4.2.3: interleaving multiplies the first stage's activations by 1 + (p-1)/(p v).
TEST(ChunksInFlight, of_the_first_interleaved_stage_are_p_v_plus_p_less_one) {
  for (const int64_t stages : {2, 4, 35}) {
    for (const int64_t chunks : {2, 3, 12}) {
      EXPECT_EQ(in_flight("interleaved", stages, chunks, 4 * stages, 0), stages * chunks + stages - 1);
    }
  }
}

// arXiv 2401.10241, sections 2.2 and 6; arXiv 2412.19437, table 2.
TEST(ChunksInFlight, of_the_first_stage_are_those_printed_for_each_schedule) {
  EXPECT_EQ(in_flight("zb-h1", 8, 1, 32, 0), 8);
  EXPECT_EQ(in_flight("zb-h2", 8, 1, 32, 0), 15);
  EXPECT_EQ(in_flight("zb-v", 8, 2, 32, 0), 16);
  EXPECT_EQ(in_flight("dualpipe", 8, 1, 32, 0), 9);
}

// Simulated stages free a chunk at its input gradients, so schedules that delay weight gradients show fewer there.
TEST(ChunksInFlight, are_those_of_the_simulated_schedule_or_more) {
  int checked = 0;
  for (const std::string& schedule : pipeline_schedule_names()) {
    for (const int64_t stages : {2, 4, 8}) {
      for (const int64_t micro_batches : {8, 16, 21, 48}) {
        PipelineWork work{.stages = stages, .micro_batches = micro_batches};
        if (!why_not(schedule, work).empty()) work.virtual_stages = 2;
        if (!why_not(schedule, work).empty()) work.micro_batch_group = 10;
        if (!why_not(schedule, work).empty()) continue;
        ++checked;
        work.chunks.assign(static_cast<size_t>(stages * work.virtual_stages), {1, 1, 1});
        const PipelineRun run = run_pipeline(schedule, work);
        for (int64_t stage = 0; stage < stages; ++stage) {
          const int64_t simulated = run.most_in_flight[static_cast<size_t>(stage)];
          const int64_t counted = chunks_in_flight(schedule, work, stage);
          const bool fused = schedule == "gpipe" || schedule == "1f1b" || schedule == "interleaved";
          EXPECT_LE(simulated, counted) << schedule << " " << stages << " " << micro_batches << " " << stage;
          EXPECT_TRUE(!fused || simulated == counted) << schedule << " " << stages << " " << micro_batches;
        }
      }
    }
  }
  EXPECT_GT(checked, 60);
}

TEST(ChunksInFlight, are_never_more_than_there_are_and_never_fewer_on_earlier_stages) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe"}) {
    for (const int64_t micro_batches : {1, 3, 8, 40}) {
      for (const int64_t chunks : {1, 2}) {
        int64_t before = in_flight(schedule, 8, chunks, micro_batches, 0);
        for (int64_t stage = 0; stage < 8; ++stage) {
          const int64_t count = in_flight(schedule, 8, chunks, micro_batches, stage);
          EXPECT_GE(count, 1);
          EXPECT_LE(count, 2 * micro_batches);
          EXPECT_LE(count, before) << schedule;
          before = count;
        }
      }
    }
  }
}

TEST(ChunksInFlight, of_an_unknown_schedule_is_an_error_with_the_nearest_name) {
  try {
    in_flight("zb-h3", 4, 1, 8, 0);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "zb-h1");
  }
}

}  // namespace foretoken::chunks_in_flight_test
