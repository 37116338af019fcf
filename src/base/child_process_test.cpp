#include "base/child_process.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::child_process_test {

struct Finished {
  int status = 0;
  std::vector<std::string> lines;
};

Finished run(const std::vector<std::string>& arguments, const ChildLimits& limits = {}) {
  Finished result;
  result.status = run_child(
      arguments, [&](std::string_view line) { result.lines.emplace_back(line); }, limits);
  return result;
}

TEST(ChildProcess, lines_arrive_in_order_and_without_their_ends) {
  const Finished child = run({"printf", "one\\ntwo\\n\\nlast without an end"});
  EXPECT_EQ(child.status, 0);
  EXPECT_EQ(child.lines, (std::vector<std::string>{"one", "two", "", "last without an end"}));
}

TEST(ChildProcess, the_shell_has_no_part_in_it) {
  const Finished child = run({"echo", "$HOME `id` ; * \"quoted\" > file"});
  EXPECT_EQ(child.lines, (std::vector<std::string>{"$HOME `id` ; * \"quoted\" > file"}));
}

TEST(ChildProcess, standard_error_arrives_too) {
  const Finished child = run({"sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(child.lines, (std::vector<std::string>{"out", "err"}));
}

TEST(ChildProcess, the_exit_status_is_the_childs) {
  EXPECT_EQ(run({"sh", "-c", "exit 7"}).status, 7);
}

TEST(ChildProcess, a_child_ended_by_a_signal_gives_128_plus_its_number) {
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST(ChildProcess, a_line_without_end_is_handed_on_in_pieces) {
  const Finished child = run({"printf", "abcdefg"}, {.max_line_bytes = 3});
  EXPECT_EQ(child.lines, (std::vector<std::string>{"abc", "def", "g"}));
}

TEST(ChildProcess, a_child_that_takes_too_long_is_ended) {
  EXPECT_THROW(run({"sleep", "1000"}, {.most_seconds = 0.01}), InputError);
}

TEST(ChildProcess, a_child_within_its_time_is_left_alone) {
  EXPECT_EQ(run({"echo", "soon"}, {.most_seconds = 1000}).lines, (std::vector<std::string>{"soon"}));
}

TEST(ChildProcess, a_program_that_does_not_exist_is_an_input_error) {
  EXPECT_THROW(run({"no-such-program-at-all"}), InputError);
}

}  // namespace foretoken::child_process_test
