#include "report/parts/model_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/checkpoint_name.h"

namespace foretoken {
namespace {

TEST(ModelNotes, an_answer_about_a_guessed_model_begins_with_a_warning) {
  const std::vector<std::string> notes = {"weights are in fp8",
                                          unknown_name_warning("meta/Tiny-1B-Banana", "Banana", "meta/Tiny-1B")};
  EXPECT_THAT(model_warnings_text(notes),
              testing::StartsWith("warning: unknown model name: meta/Tiny-1B-Banana is not in the library"));
  EXPECT_EQ(notes_text(notes), "note: weights are in fp8\n");
  EXPECT_EQ(model_warnings_text(std::vector<std::string>{"weights are in fp8"}), "");
}

}  // namespace
}  // namespace foretoken
