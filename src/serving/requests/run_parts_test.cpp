// Which parts a run can have beside each other.
#include "serving/requests/run_parts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::run_parts_test {

constexpr int parts = static_cast<int>(RunPart::request_life) + 1;

bool is_refused(RunPart one, RunPart other) {
  RunParts both;
  both.add(one);
  both.add(other);
  try {
    both.check();
    return false;
  } catch (const InputError&) {
    return true;
  }
}

TEST(RunParts, each_has_a_field_of_its_own) {
  for (int i = 0; i < parts; ++i) {
    EXPECT_FALSE(spec_field(static_cast<RunPart>(i)).empty());
    for (int k = 0; k < i; ++k) EXPECT_NE(spec_field(static_cast<RunPart>(i)), spec_field(static_cast<RunPart>(k)));
  }
}

TEST(RunParts, a_part_is_accepted_beside_another_exactly_where_both_pass_the_check) {
  int refused = 0;
  for (int i = 0; i < parts; ++i) {
    for (int k = 0; k < parts; ++k) {
      const auto one = static_cast<RunPart>(i), other = static_cast<RunPart>(k);
      RunParts here;
      here.add(one);
      EXPECT_EQ(here.accepts(other), !is_refused(one, other)) << spec_field(one) << " " << spec_field(other);
      EXPECT_EQ(is_refused(one, other), is_refused(other, one));
      refused += is_refused(one, other) ? 1 : 0;
    }
    EXPECT_FALSE(is_refused(static_cast<RunPart>(i), static_cast<RunPart>(i)));
  }
  EXPECT_EQ(refused, 2 * static_cast<int>(refused_pairs().size())) << "no pair is listed twice";
}

TEST(RunParts, a_refusal_uses_the_names_that_were_given) {
  RunParts both;
  both.add(RunPart::fleet, "--autoscaler");
  both.add(RunPart::kv_tiers);
  try {
    both.check();
    FAIL() << "tiers below replicas that come and go";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "deployment.kv_tiers");
    EXPECT_EQ(error.problem().value, "with --autoscaler");
  }
}

}  // namespace foretoken::run_parts_test
