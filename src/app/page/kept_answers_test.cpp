#include "app/page/kept_answers.h"

#include <gtest/gtest.h>

namespace foretoken::kept_answers_test {

TEST(KeptAnswers, an_answer_is_found_again_by_its_question_alone) {
  KeptAnswers kept(1000);
  EXPECT_EQ(kept.find("a"), nullptr);
  kept.keep("a", "first");
  kept.keep("a", "second");
  ASSERT_NE(kept.find("a"), nullptr);
  EXPECT_EQ(*kept.find("a"), "first");
  EXPECT_EQ(kept.find("b"), nullptr);
}

TEST(KeptAnswers, the_oldest_make_room_and_large_ones_are_not_kept) {
  KeptAnswers kept(100);
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) kept.keep(name, std::string(20, 'x'));
  EXPECT_EQ(kept.find("a"), nullptr);
  EXPECT_EQ(kept.find("b"), nullptr);
  EXPECT_NE(kept.find("c"), nullptr);
  EXPECT_NE(kept.find("f"), nullptr);
  kept.keep("large", std::string(50, 'x'));
  EXPECT_EQ(kept.find("large"), nullptr);
  EXPECT_NE(kept.find("c"), nullptr);
}

}  // namespace foretoken::kept_answers_test
