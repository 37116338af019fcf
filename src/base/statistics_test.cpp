#include "base/statistics.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::statistics_test {

TEST(Statistics, quantiles_lie_linearly_between_neighbours) {
  // numpy.quantile([7, 1, 3, 10], ...): positions 0, 0.75, 1.5, 2.7, 3 among 1, 3, 7, 10.
  const std::vector<double> values = {7, 1, 3, 10};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 9.1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
  EXPECT_EQ(quantile({4}, 0.37), 4);
  EXPECT_THROW(quantile({}, 0.5), InternalError);
  EXPECT_THROW(quantile({1}, 1.1), InternalError);
}

TEST(Statistics, a_quantile_never_falls_as_its_share_grows) {
  RandomStream stream(1, "statistics");
  std::vector<double> values(101);
  for (double& value : values) value = stream.normal(0, 1);
  std::sort(values.begin(), values.end());
  double last = values.front();
  for (int i = 0; i <= 1000; ++i) {
    const double now = quantile_of_sorted(values, i / 1000.0);
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, values.back());
  EXPECT_DOUBLE_EQ(quantile_of_sorted(values, 0.37), values[37]);
}

TEST(Statistics, mean_and_deviation_are_those_of_the_population) {
  const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(mean(values), 5);
  EXPECT_DOUBLE_EQ(standard_deviation(values), 2);
  EXPECT_THROW(mean({}), InternalError);
}

TEST(Statistics, spearman_sees_order_only) {
  const double a[] = {1, 2, 3, 4, 5}, growing[] = {1, 10, 100, 1000, 10000}, falling[] = {5, 4, 3, 2, -7};
  EXPECT_DOUBLE_EQ(spearman(a, growing), 1);
  EXPECT_DOUBLE_EQ(spearman(a, falling), -1);
  // Ranks 2 1 4 3 5: differences 1 1 1 1 0, so 1 - 6 * 4 / (5 * 24).
  const double swapped[] = {20, 10, 40, 30, 50};
  EXPECT_DOUBLE_EQ(spearman(a, swapped), 0.8);
}

TEST(Statistics, tied_values_share_their_average_rank) {
  // Ranks 1 2.5 2.5 4 and 1 2 3.5 3.5; about 2.5: products 2.25 + 0 + 0 + 1.5, squares 4.5 and 4.5.
  const double a[] = {1, 2, 2, 3}, b[] = {1, 2, 3, 3};
  EXPECT_DOUBLE_EQ(spearman(a, b), 3.75 / 4.5);
  EXPECT_DOUBLE_EQ(spearman(b, a), 3.75 / 4.5);
}

TEST(Statistics, spearman_is_zero_where_it_is_undefined) {
  const double a[] = {1, 2, 3}, constant[] = {4, 4, 4};
  EXPECT_EQ(spearman(a, constant), 0);
  EXPECT_EQ(spearman({a, 1}, {a, 1}), 0);
  EXPECT_EQ(spearman({}, {}), 0);
  EXPECT_THROW(spearman(a, {constant, 2}), InternalError);
}

TEST(Statistics, an_error_summary_worked_by_hand) {
  const PredictedRow rows[] = {
      {.measured = 10, .predicted = 12, .low = 9, .high = 15},       // +20 %, inside
      {.measured = 20, .predicted = 18, .low = 20, .high = 22},      // -10 %, on the edge: inside
      {.measured = 40, .predicted = 40, .low = 41, .high = 50},      // 0 %, below
      {.measured = 100, .predicted = 150, .low = 50, .high = 99.9},  // +50 %, above
  };
  const ErrorSummary summary = summarize_errors(rows);
  EXPECT_EQ(summary.n, 4u);
  EXPECT_DOUBLE_EQ(summary.mape, 20);
  EXPECT_DOUBLE_EQ(summary.median_ape, 15);  // of 0 10 20 50
  EXPECT_DOUBLE_EQ(summary.p90_ape, 41);     // position 2.7
  EXPECT_DOUBLE_EQ(summary.bias, 15);        // too long on the whole
  EXPECT_DOUBLE_EQ(summary.spearman, 1);
  EXPECT_DOUBLE_EQ(summary.coverage90, 50);
}

TEST(Statistics, no_rows_give_a_summary_of_zeros) {
  const ErrorSummary summary = summarize_errors({});
  EXPECT_EQ(summary.n, 0u);
  EXPECT_EQ(summary.mape + summary.median_ape + summary.p90_ape + summary.bias + summary.spearman + summary.coverage90,
            0);
}

TEST(Statistics, a_measurement_that_is_not_above_zero_is_refused) {
  for (const double measured : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    const PredictedRow row{.measured = measured, .predicted = 1};
    EXPECT_THROW(summarize_errors({&row, 1}), InternalError);
    ErrorTable table;
    EXPECT_THROW(table.add("group", row), InternalError);
  }
  const PredictedRow row{.measured = 1, .predicted = std::nan("")};
  EXPECT_THROW(summarize_errors({&row, 1}), InternalError);
}

TEST(Statistics, a_table_sums_up_each_group_and_all_rows) {
  RandomStream stream(2, "statistics");
  ErrorTable table;
  std::vector<PredictedRow> even, odd, all;
  for (int i = 0; i < 1000; ++i) {
    const double measured = stream.lognormal(0, 1);
    const double predicted = measured * stream.lognormal(0, 0.2);
    const PredictedRow row{measured, predicted, predicted * 0.7, predicted * 1.4};
    (i % 2 == 0 ? even : odd).push_back(row);
    table.add(i % 2 == 0 ? "even" : "odd", row);
    all.push_back(row);
  }
  const auto groups = table.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].first, "even");
  EXPECT_EQ(groups[0].second.mape, summarize_errors(even).mape);
  EXPECT_EQ(groups[1].second.spearman, summarize_errors(odd).spearman);
  EXPECT_EQ(table.overall().n, 1000u);
  EXPECT_EQ(table.overall().p90_ape, summarize_errors(all).p90_ape);
  EXPECT_NEAR(table.overall().mape, (groups[0].second.mape + groups[1].second.mape) / 2, 1e-10);
  EXPECT_EQ(ErrorTable().overall().n, 0u);
  EXPECT_TRUE(ErrorTable().groups().empty());
}

}  // namespace foretoken::statistics_test
