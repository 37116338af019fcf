#include "training/fit/fit_training.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "training/runs/test_runs.h"

namespace foretoken::fit_training_test {

namespace fs = std::filesystem;
using training_test::made_up_library;
using training_test::made_up_run;

// Runs that differ in what bounds them, so that their times tell constants apart.
std::vector<TrainingRow> synthetic_runs() {
  std::vector<TrainingRow> runs;
  for (const int64_t tensor : {1, 2, 4}) {
    for (const int64_t micro_batch : {1, 4}) {
      for (const int64_t micro_batches : {1, 4}) {
        TrainingRow run = made_up_run(fmt::format("run {}", runs.size()));
        run.tp = tensor;
        run.sp = tensor > 1;
        run.dp = 8 / tensor;
        run.micro_batch = micro_batch;
        run.global_batch = micro_batch * micro_batches * run.dp;
        runs.push_back(run);
      }
    }
  }
  return runs;
}

class TrainingFitOfMadeUpRuns : public testing::Test {
 protected:
  TrainingFitOfMadeUpRuns() {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("training_fit_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_stack(R"(["linear_factor", "tensor_exposed", "on.sm_90.step_us"])");
  }
  ~TrainingFitOfMadeUpRuns() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void write_stack(const std::string& fitted) const {
    write_file(folder_ / "made-up.json", fmt::format(R"({{"format": 1, "name": "made-up", "summary": "made up",
      "source": "made up", "constants": {{"host_layer_us": 1, "host_micro_batch_us": 1}}, "fitted": {},
      "runs": [{{"source": "made-up"}}]}})",
                                                     fitted));
  }

  std::vector<TrainingStack> stacks() const { return TrainingStackCatalogue(folder_).all(); }

  // The runs with the times that a stack with these constants takes.
  std::vector<TrainingCase> cases_of(TrainingCaseLibrary& library) const {
    TrainingStack truth = stacks().front();
    truth.constants[linear_factor] = true_linear;
    truth.constants[tensor_exposed] = true_tensor;
    truth.on["sm_90"][step_us] = true_step_us;
    std::vector<TrainingCase> cases;
    for (const TrainingRow& run : synthetic_runs()) {
      std::string why;
      std::optional<TrainingCase> found = library.find(run, "", why);
      EXPECT_TRUE(found) << why;
      if (!found) continue;
      found->row.iter_time_s =
          IterationModel(found->spec.job, truth, found->machine->machine()).estimate(found->spec.plan).seconds.value;
      cases.push_back(*std::move(found));
    }
    return cases;
  }

  TrainingFit fit(const TrainingCaseLibrary& library, std::vector<TrainingCase> cases, unsigned threads = 0) const {
    return fit_training({.stacks = folder_, .folds = 4, .prior = 1e-6, .threads = threads}, library, std::move(cases));
  }

  static constexpr double true_linear = 1.4, true_tensor = 0.5, true_step_us = 5000;
  fs::path folder_;
};

TEST_F(TrainingFitOfMadeUpRuns, finds_the_constants_that_made_them) {
  TrainingCaseLibrary library = made_up_library(stacks());
  const TrainingFit found = fit(library, cases_of(library));
  EXPECT_EQ(found.constants, 3U);
  ASSERT_EQ(found.stacks.size(), 1U);
  const TrainingStack fitted = parse_training_stack(found.stacks.front().file.dump(0), "fitted");
  EXPECT_NEAR(fitted.constants[linear_factor], true_linear, 0.03 * true_linear);
  EXPECT_NEAR(fitted.constants[tensor_exposed], true_tensor, 0.05 * true_tensor);
  EXPECT_NEAR(fitted.on.at("sm_90").at(step_us), true_step_us, 0.1 * true_step_us);
  EXPECT_LT(found.seen.overall.mape, 1);
  EXPECT_LT(found.unseen.overall.mape, 2);
  // Kernels by roofline: the runs' own are uncertain, and so the interval holds that.
  EXPECT_LT(fitted.interval.kernels_low, 0.95);
  EXPECT_GT(fitted.interval.kernels_high, 1.05);
}

// What runs do not tell about a stack is what it is in the stack that it extends, on a place what it is elsewhere.
TEST_F(TrainingFitOfMadeUpRuns, leaves_what_no_run_tells_at_what_is_known_of_it) {
  write_file(folder_ / "newer.json",
             R"({"format": 1, "name": "newer", "summary": "made up", "source": "made up", "extends": "made-up",
               "fitted": ["linear_factor", "on.sm_100.linear_factor"], "runs": [{"source": "another"}]})");
  TrainingCaseLibrary library = made_up_library(stacks());
  const TrainingFit found =
      fit_training({.stacks = folder_, .folds = 2, .prior = 1e-3, .date = "2026-11-19"}, library, cases_of(library));
  ASSERT_EQ(found.stacks.size(), 2U);
  for (const FittedStack& stack : found.stacks) {
    const Json* date = stack.file.find("fitted_on");
    ASSERT_EQ(date != nullptr, stack.runs > 0) << stack.name << " has a date where it was fitted";
    EXPECT_TRUE(date == nullptr || date->string() == "2026-11-19");
  }
  const Json& newer = found.stacks[found.stacks.front().name == "newer" ? 0 : 1].file;
  EXPECT_NEAR(newer.find("constants")->find("linear_factor")->number(), true_linear, 0.1 * true_linear);
  EXPECT_NEAR(newer.find("on")->find("sm_100")->find("linear_factor")->number(), true_linear, 0.1 * true_linear);
}

// Whatever a run took has no say in its own left-out prediction.
TEST_F(TrainingFitOfMadeUpRuns, does_not_show_a_run_to_the_fit_it_is_left_out_of) {
  TrainingCaseLibrary library = made_up_library(stacks());
  const std::vector<TrainingCase> cases = cases_of(library);
  const TrainingFit before = fit(library, cases);
  std::vector<TrainingCase> contradicted = cases;
  contradicted[3].row.iter_time_s = 10 * *contradicted[3].row.iter_time_s;
  const TrainingFit after = fit(library, contradicted);
  EXPECT_EQ(after.runs[3].unseen_s, before.runs[3].unseen_s);
  EXPECT_GT(after.runs[3].measured_s, 5 * after.runs[3].unseen_s);
  EXPECT_NE(after.runs[3].seen_s, before.runs[3].seen_s);
}

// A configuration measured several times is one thing to predict.
TEST_F(TrainingFitOfMadeUpRuns, leaves_out_all_readings_of_a_configuration_together) {
  TrainingCaseLibrary library = made_up_library(stacks());
  std::vector<TrainingCase> cases = cases_of(library);
  cases.push_back(cases[3]);
  const TrainingFit before = fit(library, cases);
  for (const size_t reading : {size_t{3}, cases.size() - 1}) {
    cases[reading].row.iter_time_s = 10 * *cases[reading].row.iter_time_s;
  }
  const TrainingFit after = fit(library, cases);
  EXPECT_EQ(after.runs[3].unseen_s, before.runs[3].unseen_s);
  EXPECT_EQ(after.runs.back().unseen_s, before.runs.back().unseen_s);
}

TEST_F(TrainingFitOfMadeUpRuns, listens_to_the_only_run_of_a_source) {
  write_stack(R"(["on.sm_90.step_us"])");
  TrainingCaseLibrary library = made_up_library(stacks());
  const TrainingFit found = fit(library, {cases_of(library).front()});
  ASSERT_EQ(found.runs.size(), 1U);
  EXPECT_NEAR(found.runs.front().seen_s, found.runs.front().measured_s, 0.02 * found.runs.front().measured_s);
}

TEST_F(TrainingFitOfMadeUpRuns, can_leave_out_all_runs_of_a_model_together) {
  TrainingCaseLibrary library = made_up_library(stacks());
  std::vector<TrainingCase> cases = cases_of(library);
  const auto fit_by_model = [&] {
    return fit_training({.stacks = folder_, .folds = 2, .folds_by_model = true, .prior = 1e-6}, library, cases);
  };
  const TrainingFit before = fit_by_model();
  cases[3].row.iter_time_s = 10 * *cases[3].row.iter_time_s;
  const TrainingFit after = fit_by_model();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(after.runs[i].unseen_s, before.runs[i].unseen_s);
}

TEST_F(TrainingFitOfMadeUpRuns, is_the_same_with_any_number_of_threads) {
  TrainingCaseLibrary library = made_up_library(stacks());
  const std::vector<TrainingCase> cases = cases_of(library);
  const TrainingFit alone = fit(library, cases, 1);
  for (const unsigned threads : {2U, 5U, 16U}) {
    const TrainingFit together = fit(library, cases, threads);
    ASSERT_EQ(together.runs.size(), alone.runs.size());
    for (size_t i = 0; i < alone.runs.size(); ++i) {
      EXPECT_EQ(together.runs[i].seen_s, alone.runs[i].seen_s) << threads;
      EXPECT_EQ(together.runs[i].unseen_s, alone.runs[i].unseen_s) << threads;
    }
    EXPECT_EQ(together.stacks.front().file.dump(0), alone.stacks.front().file.dump(0)) << threads;
  }
}

TEST_F(TrainingFitOfMadeUpRuns, leaves_runs_without_a_time_and_of_other_stacks_alone) {
  TrainingCaseLibrary library = made_up_library(stacks());
  std::vector<TrainingCase> cases = cases_of(library);
  cases.front().row.iter_time_s = std::nullopt;
  EXPECT_EQ(fit(library, cases).runs.size(), cases.size() - 1);
  const TrainingFit none = fit_training({.stacks = folder_, .only = {"another"}, .folds = 2}, library, cases);
  EXPECT_TRUE(none.runs.empty());
  EXPECT_EQ(none.stacks.front().runs, 0U);
  EXPECT_EQ(none.stacks.front().file.find("interval"), nullptr);
}

TEST_F(TrainingFitOfMadeUpRuns, asks_about_a_run_with_its_own_optimizer) {
  write_stack("[]");
  TrainingCaseLibrary library = made_up_library(stacks());
  std::vector<TrainingCase> cases;
  for (const char* optimizer : {"adam", "muon"}) {
    TrainingRow run = made_up_run(optimizer);
    run.optimizer = optimizer;
    run.iter_time_s = 1;
    std::string why;
    std::optional<TrainingCase> found = library.find(run, "", why);
    ASSERT_TRUE(found) << why;
    cases.push_back(*std::move(found));
  }
  const TrainingFit found = fit(library, std::move(cases));
  ASSERT_EQ(found.runs.size(), 2U);
  EXPECT_GT(found.runs[1].seen_s, found.runs[0].seen_s) << "its multiplies";
}

TEST_F(TrainingFitOfMadeUpRuns, refuses_a_stack_that_fits_what_is_no_constant) {
  for (const char* name : {"linear_facter", "on.sm_90", "on..linear_factor"}) {
    write_stack(fmt::format(R"(["{}"])", name));
    try {
      stacks();
      ADD_FAILURE() << "no InputError: " << name;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().path, "fitted");
      EXPECT_NE(error.problem().value.find(name), std::string::npos);
    }
  }
}

}  // namespace foretoken::fit_training_test
