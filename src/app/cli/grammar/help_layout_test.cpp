#include "app/cli/grammar/help_layout.h"

#include <gtest/gtest.h>

namespace foretoken::help_layout_test {

TEST(HelpLayout, prose_is_wrapped_without_indent) {
  const std::string laid = laid_out_notes(std::string(60, 'a') + " " + std::string(60, 'b'));
  EXPECT_EQ(laid, std::string(60, 'a') + "\n" + std::string(60, 'b'));
}

TEST(HelpLayout, a_sentence_over_two_lines_is_joined_and_broken_anew) {
  EXPECT_EQ(laid_out_notes("One sentence\nover two lines.\nAnother.\nExamples:\n  foretoken demo"),
            "One sentence over two lines.\nAnother.\nExamples:\n  foretoken demo");
}

TEST(HelpLayout, a_long_example_goes_on_at_a_flag_as_the_shell_reads_it) {
  const std::string start = "  foretoken serve --model " + std::string(60, 'm');
  EXPECT_EQ(laid_out_notes(start + " --request-rate 4 --router least"),
            start + " \\\n      --request-rate 4 --router least");
}

TEST(HelpLayout, lines_that_an_example_already_has_are_joined_and_broken_anew) {
  EXPECT_EQ(laid_out_notes("  foretoken train --a 1\n      --b 2"), "  foretoken train --a 1 --b 2");
  EXPECT_EQ(laid_out_notes("  foretoken train --a 1 \\\n    --b 2"), "  foretoken train --a 1 --b 2");
}

TEST(HelpLayout, what_is_quoted_stays_in_one_line) {
  const std::string quoted = "'step --model " + std::string(90, 'm') + " --batch 32'";
  EXPECT_EQ(laid_out_notes("  foretoken compare --first " + quoted + " --second x"),
            "  foretoken compare \\\n      --first " + quoted + " \\\n      --second x");
}

}  // namespace foretoken::help_layout_test
