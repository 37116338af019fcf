#include "app/cli/flags/store_flags.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::store_flags_test {

Environment launched_as(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Environment second_of_two() {
  return launched_as({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
}

Environment second_of_array() {
  return launched_as({{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_COUNT", "2"}});
}

TEST(StoreFlags, ranks_need_a_store_to_share) {
  EXPECT_TRUE(StoreFlags{}.own_rank(launched_as({})).answers());
  EXPECT_THROW(StoreFlags{}.own_rank(second_of_two()), InputError);
  EXPECT_FALSE(StoreFlags{.store = "file"}.own_rank(second_of_two()).answers());
}

TEST(StoreFlags, tasks_of_an_array_without_a_store_answer_questions_of_their_own) {
  EXPECT_TRUE(StoreFlags{}.own_rank(second_of_array()).answers());
  EXPECT_FALSE(StoreFlags{.store = "file"}.own_rank(second_of_array()).answers());
}

TEST(StoreFlags, pods_of_a_kubernetes_job_share_a_store_if_there_is_one) {
  const Environment fourth_pod = launched_as({{"JOB_COMPLETION_INDEX", "3"}});
  EXPECT_TRUE(StoreFlags{}.own_rank(fourth_pod).answers());
  EXPECT_FALSE(StoreFlags{.store = "postgresql://db/plans"}.own_rank(fourth_pod).answers());
}

TEST(StoreFlags, flags_count_more_than_the_launcher) {
  EXPECT_TRUE((StoreFlags{.store = {}, .ranks = 1}.own_rank(second_of_two()).answers()));
  EXPECT_EQ((StoreFlags{.store = "file", .rank = 2, .ranks = 4}.own_rank(second_of_two()).number), 2);
}

}  // namespace foretoken::store_flags_test
