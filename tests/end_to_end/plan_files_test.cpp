// Files that a plan leaves behind where it finds no layout.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "command_test.h"

namespace foretoken::plan_files_test {

using testing::HasSubstr;

class PlanFiles : public CommandTest {
 protected:
  // A model that one L4 has no room for.
  static Outcome plan(const std::string& files) {
    return run_foretoken("plan serve --model Llama-3.1-70B --hardware l4:1 --slo ttft:500,tpot:50 --engines vllm " +
                         files);
  }
};

TEST_F(PlanFiles, without_a_layout_no_empty_file_is_left_and_an_old_one_is_said_to_be_old) {
  const std::string old = write("old.json", "of an earlier run");
  const std::string manifest = path("manifest.yaml");
  const Outcome run = plan("--trace-out " + old + " --launch kubernetes --launch-out " + manifest);
  ASSERT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(in_one_line(run.out), HasSubstr("old.json was not written"));
  EXPECT_THAT(in_one_line(run.out), HasSubstr("manifest.yaml was not written"));
  EXPECT_EQ(read_file(old, 1U << 20U), "of an earlier run");
  EXPECT_FALSE(std::filesystem::exists(manifest));

  ASSERT_EQ(plan("--trace-out " + path("trace.json")).status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
}

TEST_F(PlanFiles, a_refused_question_leaves_no_file) {
  expect_refused(plan("--trace-out " + path("trace.json") + " --request-rate 0"), "--request-rate");
  EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
  expect_refused(plan("--trace-out " + path("no/folder.json")), "--trace-out");
}

}  // namespace foretoken::plan_files_test
