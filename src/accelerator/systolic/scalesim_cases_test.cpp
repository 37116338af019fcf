#include "accelerator/systolic/scalesim_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace foretoken::scalesim_cases_test {

// Whole numbers exactly; the rest to the four decimals that SCALE-Sim's reports were kept with.
TEST(ScaleSimCasesNeedsData, every_figure_of_every_case_is_the_reported_one) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const auto cases = read_scalesim_cases(std::filesystem::path(data) / "accelerator" / "scalesim_cases.json");
  ASSERT_FALSE(cases.empty());
  for (const ScaleSimCase& one : cases) {
    ASSERT_EQ(one.why_not, "") << one.id;
    const SystolicFigures figures = scalesim_figures(simulate_systolic(one.array, one.layer));
    EXPECT_EQ(figures.size(), one.expected.size()) << one.id;
    for (const auto& [name, expected] : one.expected) {
      const auto found = figures.find(name);
      ASSERT_NE(found, figures.end()) << one.id << ": " << name;
      const double tolerance = expected == std::floor(expected) ? 0 : 0.5001e-4;
      EXPECT_NEAR(found->second, expected, tolerance) << one.id << ": " << name;
    }
  }
}

}  // namespace foretoken::scalesim_cases_test
