#include "accelerator/validate/sparse_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "accelerator/mapping_text.h"
#include "base/file.h"

namespace foretoken::sparse_cases_test {

class PublishedSparseCasesNeedsData : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    const auto path = std::filesystem::path(folder) / "accelerator" / "eyeriss_alexnet_cases.json";
    const Json document = read_json_file(path);
    cases_ = read_sparse_cases(JsonView(document, path.string()));
    ASSERT_FALSE(cases_.empty());
  }

  static SparseEvaluation evaluated(const SparseCase& own, const SparseRules& rules = sparseloop_rules) {
    Evaluation dense;
    EXPECT_TRUE(MappingEvaluator(own.architecture, own.problem, timeloop_rules).evaluate(own.mapping, dense)) << own.id;
    return evaluate_sparse(own.architecture, own.problem, own.mapping, dense, own.sparsity, rules);
  }

  std::vector<SparseCase> cases_;
};

// The reference rounds up a count that binary fractions leave just above a whole one; ours is the whole one.
constexpr double doubtful_words = 1;

void expect_counts(const SparseAccesses& counted, const SparseAccesses& expected, const std::string& where) {
  EXPECT_NEAR(counted.actual, expected.actual, doubtful_words) << where;
  EXPECT_EQ(counted.gated, expected.gated) << where;
  EXPECT_EQ(counted.skipped, expected.skipped) << where;
}

TEST_F(PublishedSparseCasesNeedsData, are_sound_mappings) {
  for (const SparseCase& own : cases_) {
    EXPECT_EQ(mapping_faults(own.mapping, own.architecture, own.problem), std::vector<std::string>{}) << own.id;
    EXPECT_EQ(sparsity_fault(own.sparsity, own.architecture, own.problem), "") << own.id;
  }
}

TEST_F(PublishedSparseCasesNeedsData, every_count_is_exact_but_for_a_rounded_word) {
  for (const SparseCase& own : cases_) {
    const SparseEvaluation result = evaluated(own);
    EXPECT_EQ(result.operations.actual, own.operations) << own.id;
    for (const ExpectedSparseTraffic& expected : own.traffic) {
      const int level = find_level(own.architecture, expected.level);
      const int tensor = find_tensor(own.problem, expected.tensor);
      const SparseTraffic& counted = result.traffic[level * own.problem.tensors.size() + tensor];
      const std::string where = own.id + " " + expected.level + " " + expected.tensor;
      EXPECT_EQ(counted.instances, expected.instances) << where;
      expect_counts(counted.reads, expected.reads, where + " reads");
      expect_counts(counted.fills, expected.fills, where + " fills");
      expect_counts(counted.updates, expected.updates, where + " updates");
    }
  }
}

// The reference divides by a throttle that it has rounded, which can add a cycle.
TEST_F(PublishedSparseCasesNeedsData, cycles_are_exact_but_for_one) {
  for (const SparseCase& own : cases_) {
    const SparseEvaluation result = evaluated(own);
    EXPECT_EQ(result.compute_cycles, own.compute_cycles) << own.id;
    EXPECT_NEAR(result.cycles, own.cycles, 1) << own.id;
    for (const ExpectedSparseLevel& expected : own.levels) {
      const int level = find_level(own.architecture, expected.level);
      EXPECT_NEAR(result.levels[level].cycles, expected.cycles, 1) << own.id << " " << expected.level;
    }
  }
}

TEST_F(PublishedSparseCasesNeedsData, energy_of_every_tensor_at_every_level_is_that_of_its_counts) {
  constexpr double printed_digits = 1e-5;  // and one access to DRAM of a doubtful word
  for (const SparseCase& own : cases_) {
    const SparseEvaluation result = evaluated(own);
    EXPECT_NEAR(result.energy_pj / own.energy_pj, 1, printed_digits) << own.id;
    EXPECT_NEAR(result.compute_pj / own.compute_pj, 1, printed_digits) << own.id;
    for (const ExpectedSparseTraffic& expected : own.traffic) {
      const int level = find_level(own.architecture, expected.level);
      const int tensor = find_tensor(own.problem, expected.tensor);
      const SparseTraffic& counted = result.traffic[level * own.problem.tensors.size() + tensor];
      EXPECT_NEAR(counted.energy_pj / expected.energy_pj, 1, printed_digits)
          << own.id << " " << expected.level << " " << expected.tensor;
    }
  }
}

}  // namespace foretoken::sparse_cases_test
