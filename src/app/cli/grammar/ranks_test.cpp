#include "app/cli/grammar/ranks.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::ranks_test {

ProcessRank rank_with(const std::map<std::string, std::string>& variables) {
  return rank_from([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Ranks, a_process_that_nobody_launched_answers_alone) {
  const ProcessRank rank = rank_with({});
  EXPECT_TRUE(rank.answers());
  EXPECT_EQ(rank.count, 1);
}

TEST(Ranks, launchers_say_who_is_who) {
  const ProcessRank open_mpi = rank_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
  EXPECT_EQ(open_mpi.number, 2);
  EXPECT_EQ(open_mpi.count, 3);
  EXPECT_FALSE(open_mpi.answers());
  EXPECT_EQ(rank_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).number, 1);
  EXPECT_EQ(rank_with({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}}).number, 5);
}

TEST(Ranks, the_first_pod_of_an_indexed_kubernetes_job_answers) {
  EXPECT_TRUE(rank_with({{"JOB_COMPLETION_INDEX", "0"}}).answers());
  EXPECT_FALSE(rank_with({{"JOB_COMPLETION_INDEX", "3"}}).answers());
  EXPECT_EQ(rank_with({{"JOB_COMPLETION_INDEX", "3"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).number, 1);
  EXPECT_THROW(rank_with({{"JOB_COMPLETION_INDEX", "first"}}), InputError);
}

TEST(Ranks, a_batch_script_for_several_tasks_is_one_process) {
  EXPECT_EQ(rank_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).count, 1);
}

TEST(Ranks, exactly_one_task_of_an_array_answers) {
  int answers = 0;
  for (const char* task : {"3", "5", "9"}) {
    const ProcessRank rank =
        rank_with({{"SLURM_ARRAY_TASK_ID", task}, {"SLURM_ARRAY_TASK_MIN", "3"}, {"SLURM_ARRAY_TASK_COUNT", "3"}});
    EXPECT_EQ(rank.count, 3);
    if (rank.answers()) ++answers;
  }
  EXPECT_EQ(answers, 1);
}

TEST(Ranks, exactly_one_process_of_an_array_of_launchers_answers) {
  int answers = 0;
  for (const char* task : {"1", "2"}) {
    for (const char* process : {"0", "1", "2"}) {
      const ProcessRank rank = rank_with({{"SLURM_ARRAY_TASK_ID", task},
                                          {"SLURM_ARRAY_TASK_MIN", "1"},
                                          {"SLURM_ARRAY_TASK_COUNT", "2"},
                                          {"SLURM_PROCID", process},
                                          {"SLURM_STEP_NUM_TASKS", "3"}});
      EXPECT_EQ(rank.count, 6);
      if (rank.answers()) ++answers;
    }
  }
  EXPECT_EQ(answers, 1);
}

TEST(Ranks, numbers_that_make_no_sense_are_named) {
  EXPECT_THROW(rank_with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), InputError);
  EXPECT_THROW(rank_with({{"PMI_RANK", "one"}, {"PMI_SIZE", "3"}}), InputError);
  EXPECT_THROW(rank_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}), InputError);
}

}  // namespace foretoken::ranks_test
