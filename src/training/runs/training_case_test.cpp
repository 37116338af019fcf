#include "training/runs/training_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "training/runs/test_runs.h"

namespace foretoken::training_case_test {

using testing::ElementsAre;
using testing::HasSubstr;
using training_test::made_up_library;
using training_test::made_up_run;
using training_test::plain_stack;

TrainingStack stack_for(const std::string& name, std::vector<StackRuns> runs) {
  TrainingStack stack = plain_stack();
  stack.name = name;
  stack.runs = std::move(runs);
  return stack;
}

std::string stack_found(TrainingCaseLibrary& library, const TrainingRow& row, const std::string& wanted = "") {
  std::string why;
  const std::optional<TrainingCase> found = library.find(row, wanted, why);
  return found ? library.stacks()[found->stack].name : why;
}

TEST(TrainingCase, the_stack_of_a_run_is_that_of_its_source_release_and_task) {
  TrainingCaseLibrary library = made_up_library({stack_for("old", {{.source = "made-up", .releases = {"1.0", "1.1"}}}),
                                                 stack_for("new", {{.source = "made-up", .releases = {"2.0"}}}),
                                                 stack_for("adapters", {{.source = "made-up", .task = "lora"}}),
                                                 stack_for("other", {{.source = "elsewhere"}})});
  TrainingRow row = made_up_run("r");
  row.notes = "release 1.1; tokens rounded";
  EXPECT_EQ(stack_found(library, row), "old");
  row.notes = "measured with release 2.0, twice";
  EXPECT_EQ(stack_found(library, row), "new");
  EXPECT_EQ(stack_found(library, row, "other"), "other");
  row.task = "lora";
  EXPECT_EQ(stack_found(library, row), "adapters");
  row.task = "pretrain";
  row.source = "unknown";
  EXPECT_THAT(stack_found(library, row), HasSubstr("no training stack is known for unknown"));
}

TEST(TrainingCase, a_release_that_no_stack_names_gets_the_newest_before_it_or_the_oldest) {
  TrainingCaseLibrary library =
      made_up_library({stack_for("newest", {{.source = "made-up", .releases = {"26.06"}}}),
                       stack_for("oldest", {{.source = "made-up", .releases = {"25.09", "25.11"}}}),
                       stack_for("middle", {{.source = "made-up", .releases = {"26.02", "26.04"}}})});
  TrainingRow row = made_up_run("r");
  for (const auto& [release, stack] : std::vector<std::pair<std::string, std::string>>{{"26.04.02", "middle"},
                                                                                       {"26.05", "middle"},
                                                                                       {"27.01", "newest"},
                                                                                       {"25.12", "oldest"},
                                                                                       {"24.01", "oldest"}}) {
    row.notes = "release " + release;
    EXPECT_EQ(stack_found(library, row), stack) << release;
  }
  row.notes = "none given";
  EXPECT_EQ(stack_found(library, row), "newest");
}

TEST(TrainingCase, a_stack_that_names_models_devices_or_formats_has_those_runs_alone) {
  TrainingRow row = made_up_run("r");
  row.notes = "release 2.0";
  const auto found_with = [&](const StackRuns& narrow, bool narrow_first) {
    std::vector<TrainingStack> stacks = {stack_for("old", {{.source = "made-up", .releases = {"1.0"}}}),
                                         stack_for("wide", {{.source = "made-up", .releases = {"2.0"}}})};
    stacks.insert(narrow_first ? stacks.begin() : stacks.end(), stack_for("narrow", {narrow}));
    TrainingCaseLibrary one = made_up_library(std::move(stacks));
    return stack_found(one, row);
  };
  const std::string chip = row.gpu.substr(0, row.gpu.find('-'));
  for (const bool narrow_first : {true, false}) {
    EXPECT_EQ(found_with({.source = "made-up", .releases = {"2.0"}, .models = {row.model}}, narrow_first), "narrow");
    EXPECT_EQ(
        found_with({.source = "made-up", .releases = {"2.0"}, .gpus = {chip}, .dtypes = {row.dtype}}, narrow_first),
        "narrow");
    EXPECT_EQ(found_with({.source = "made-up", .releases = {"2.0"}, .models = {"another"}}, narrow_first), "wide");
    EXPECT_EQ(found_with({.source = "made-up", .releases = {"2.0"}, .gpus = {"B9000"}}, narrow_first), "wide");
    EXPECT_EQ(found_with({.source = "made-up", .releases = {"2.0"}, .dtypes = {"fp2"}}, narrow_first), "wide");
    // From a later release on.
    EXPECT_EQ(found_with({.source = "made-up", .releases = {"2.1"}, .models = {row.model}}, narrow_first), "wide");
  }
}

TEST(TrainingCase, a_release_is_what_the_notes_say_after_the_word) {
  TrainingRow row = made_up_run("r");
  for (const auto& [notes, release] : std::vector<std::pair<std::string, std::string>>{
           {"release 26.06.01; rounded", "26.06.01"}, {"release 25.09", "25.09"}, {"no word of it", ""}}) {
    row.notes = notes;
    EXPECT_EQ(release_of(row), release);
  }
}

TEST(TrainingCase, formats_and_tasks_of_a_run_are_those_of_the_job) {
  TrainingCaseLibrary library = made_up_library({stack_for("all", {{.source = "made-up"}})});
  const auto job_of = [&](const std::string& dtype, const std::string& task) {
    TrainingRow row = made_up_run("r");
    row.dtype = dtype;
    row.task = task;
    std::string why;
    const std::optional<TrainingCase> found = library.find(row, "", why);
    EXPECT_TRUE(found) << why;
    return found ? found->spec.job : TrainingJob{};
  };
  EXPECT_EQ(job_of("bf16-amp", "pretrain").recipe.name, "bf16");
  EXPECT_EQ(job_of("fp8", "pretrain").recipe.name, "fp8-delayed");
  EXPECT_EQ(job_of("bf16", "sft").lora.rank, 0);
  EXPECT_GT(job_of("bf16", "lora").lora.rank, 0);
}

TEST(TrainingCase, the_optimizer_is_that_of_the_row_else_that_of_the_recipe) {
  TrainingCaseLibrary library = made_up_library(
      {stack_for("made", {{.source = "made-up"}}), stack_for("bridge", {{.source = "megatron-bridge"}})});
  const auto iterations_of = [&](const std::string& source, const std::string& model, const std::string& optimizer) {
    TrainingRow row = made_up_run("r");
    row.source = source;
    row.model = model;
    row.optimizer = optimizer;
    row.cluster = "a100_ib_rail";
    std::string why;
    const std::optional<TrainingCase> found = library.find(row, "", why);
    EXPECT_TRUE(found) << why;
    return found ? library.question_of(*found).job.orthogonal_steps : -1;
  };
  EXPECT_EQ(iterations_of("megatron-bridge", "Kimi_K2", ""), 5) << "Muon";
  EXPECT_EQ(iterations_of("megatron-bridge", "Kimi_K2", "adam"), 0);
  EXPECT_EQ(iterations_of("megatron-bridge", "DeepSeekV3", ""), 0);
  EXPECT_EQ(iterations_of("made-up", "Kimi_K2", ""), 0);
}

TEST(TrainingCase, formats_that_the_device_does_not_multiply_in_are_refused) {
  TrainingCaseLibrary library = made_up_library({stack_for("all", {{.source = "made-up"}})});
  for (const std::string format : {"nvfp4", "mxfp8"}) {
    TrainingRow row = made_up_run("r");
    row.dtype = format + "?";
    std::string why;
    EXPECT_FALSE(library.find(row, "", why));
    EXPECT_THAT(why, HasSubstr(format));
    EXPECT_THAT(why, HasSubstr("H100"));
  }
}

TEST(TrainingCase, what_cannot_be_expressed_says_why) {
  TrainingCaseLibrary library = made_up_library({stack_for("all", {{.source = "made-up"}})});
  TrainingRow row = made_up_run("r");
  row.gpu = "H1000";
  EXPECT_THAT(stack_found(library, row), HasSubstr("no known cluster of H1000"));
  row = made_up_run("r");
  row.dtype = "fp6";
  EXPECT_THAT(stack_found(library, row), HasSubstr("fp6"));
  row = made_up_run("r");
  row.tp = 8;  // 12 heads
  row.dp = 1;
  row.heads = row.kv_heads = 12;
  EXPECT_THAT(stack_found(library, row), HasSubstr("12 attention heads"));
}

TEST(TrainingCase, runs_on_one_machine_share_its_models) {
  int made = 0;
  TrainingCaseLibrary library({stack_for("all", {{.source = "made-up"}})},
                              {{.gpu = "H100", .cluster = "h100_ib_rail", .sources = {}}},
                              training_test::library_hardware(), [&](const Cluster& cluster) {
                                ++made;
                                return training_test::roofline_machine(cluster);
                              });
  std::string why;
  const auto first = library.find(made_up_run("a"), "", why), second = library.find(made_up_run("b"), "", why);
  ASSERT_TRUE(first && second) << why;
  EXPECT_EQ(first->machine, second->machine);
  TrainingRow larger = made_up_run("c");
  larger.n_gpus = larger.dp = larger.global_batch = 16;
  ASSERT_TRUE(library.find(larger, "", why)) << why;
  EXPECT_EQ(made, 2);
}

TEST(RunClusters, the_first_entry_with_the_device_and_the_source_counts) {
  TrainingCaseLibrary library({stack_for("all", {{.source = "made-up"}, {.source = "cloud"}})},
                              {{.gpu = "H100", .cluster = "h100_roce_pods", .sources = {"cloud"}},
                               {.gpu = "H100", .cluster = "h100_ib_rail", .sources = {}}},
                              training_test::library_hardware(),
                              [](const Cluster& cluster) { return training_test::roofline_machine(cluster); });
  std::string why;
  TrainingRow cloud = made_up_run("r");
  cloud.source = "cloud";
  const auto here = library.find(made_up_run("r"), "", why), there = library.find(cloud, "", why);
  ASSERT_TRUE(here && there) << why;
  EXPECT_NE(here->machine, there->machine);
}

TEST(RunClusters, a_complaint_names_file_line_and_path) {
  const std::vector<RunCluster> read = parse_run_clusters(
      R"({"clusters": [{"gpu": "H100", "cluster": "c", "sources": ["a", "b"]}, {"gpu": "A100", "cluster": "d"}]})",
      "clusters.json");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_THAT(read[0].sources, ElementsAre("a", "b"));
  const auto problem_in = [](const std::string& text) {
    try {
      parse_run_clusters(text, "clusters.json");
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "no InputError";
    return InputProblem{};
  };
  EXPECT_EQ(problem_in("{}").source, "clusters.json");
  EXPECT_EQ(problem_in("{\n\"clusters\": [\n{").line, 3);
  EXPECT_EQ(problem_in(R"({"clusters": [{"gpu": "H100", "cluster": 7}]})").path, "clusters[0].cluster");
  EXPECT_EQ(problem_in(R"({"clusters": [{"gpu": "H100", "cluster": "c", "sauce": []}]})").path, "clusters[0].sauce");
}

}  // namespace foretoken::training_case_test
