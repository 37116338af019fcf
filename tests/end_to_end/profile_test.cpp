// `foretoken profile cuda` around a stand-in for Python: what it checks, hands on and says. The sweep itself needs a
// GPU.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::profile_test {

namespace fs = std::filesystem;

class ProfileCuda : public testing::Test {
 protected:
  ProfileCuda() {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("profile_") + info.name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ProfileCuda() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // A program that answers the probe with `device`, and when called with the script runs `sweep` with $OUT set.
  std::string fake_python(const std::string& device, const std::string& sweep) const {
    const fs::path path = folder_ / "fake-python";
    write_file(path, fmt::format("#!/bin/sh\n"
                                 "if [ \"$1\" = -c ]; then echo '{}'; exit 0; fi\n"
                                 "echo \"$@\" >> {}/calls\n"
                                 "for word in \"$@\"; do\n"
                                 "  [ \"$before\" = --out ] && OUT=$word\n"
                                 "  [ \"$word\" = --plan ] && {{ echo 'gemm 2 0 0.5'; exit 0; }}\n"
                                 "  before=$word\n"
                                 "done\n"
                                 "{}\n",
                                 device, folder_.string(), sweep));
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }

  std::string calls() const { return read_file(folder_ / "calls", 1 << 20); }

  Outcome profile(const std::string& python, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"profile", "cuda", "--python", python, "--out", (folder_ / "measured").string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_foretoken(words);
  }

  fs::path folder_;
};

constexpr const char* writes_two_rows =
    "mkdir -p \"$OUT\"; echo '{}' > \"$OUT/meta.json\"\n"
    "printf 'kernel,dtype,m,n,k,caches,latency_us\\ntorch_linear,bf16,64,4096,4096,cold,11\\n"
    "torch_linear,bf16,128,4096,4096,cold,12\\n' > \"$OUT/gemm.csv\"\n"
    "echo '2 rows, 0 skipped'";

TEST_F(ProfileCuda, a_sweep_lands_in_a_folder_named_after_the_device_and_is_read_back) {
  const Outcome run = profile(fake_python("device NVIDIA H200", writes_two_rows), {"--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_EQ(json.find("device")->string(), "h200_sxm");
  EXPECT_EQ(json.find("rows")->integer(), 2);
  EXPECT_TRUE(fs::exists(folder_ / "measured" / "h200_sxm" / "gemm.csv"));
}

TEST_F(ProfileCuda, the_answer_says_how_to_fit_and_validate) {
  const Outcome run = profile(fake_python("device NVIDIA H200", writes_two_rows));
  for (const char* command :
       {"foretoken fit kernels --data", "foretoken fit power --data", "foretoken validate kernels"}) {
    EXPECT_NE(run.out.find(command), std::string::npos) << run.out;
  }
}

TEST_F(ProfileCuda, flags_reach_the_script) {
  profile(fake_python("device NVIDIA H200", writes_two_rows),
          {"--only", "gemm,norm", "--minutes", "3", "--scale", "2"});
  EXPECT_NE(calls().find("--minutes 3 --scale 2 --families gemm,norm --progress"), std::string::npos) << calls();
}

TEST_F(ProfileCuda, measurements_are_not_continued_unasked) {
  const std::string python = fake_python("device NVIDIA H200", writes_two_rows);
  ASSERT_EQ(profile(python).status, 0);
  const Outcome again = profile(python);
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("--resume"), std::string::npos) << again.err;
  EXPECT_EQ(profile(python, {"--resume"}).status, 0);
}

TEST_F(ProfileCuda, a_device_that_the_library_lacks_is_measured_all_the_same) {
  const Outcome run = profile(fake_python("device NVIDIA Xyz-9", writes_two_rows), {"--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parse_json(run.out, "answer").find("device")->string(), "nvidia_xyz_9");
}

TEST_F(ProfileCuda, what_is_missing_is_said_with_the_way_out) {
  for (const std::string& answer :
       {std::string("no-torch"), std::string("no-device"), std::string("Segmentation fault")}) {
    const Outcome run = profile(fake_python(answer, "exit 1"));
    EXPECT_EQ(run.status, 2) << answer;
    EXPECT_NE(run.err.find("profile_cuda.py"), std::string::npos) << run.err;
    EXPECT_TRUE(run.out.empty());
  }
  const Outcome none = profile((folder_ / "no-such-python").string());
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("profile_cuda.py"), std::string::npos) << none.err;
}

TEST_F(ProfileCuda, a_sweep_that_fails_is_no_answer) {
  const Outcome run = profile(fake_python("device NVIDIA H200", "echo 'device error: lost'; exit 1"));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("device error: lost"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("--resume"), std::string::npos) << run.err;
}

TEST_F(ProfileCuda, broken_files_of_a_sweep_are_named) {
  const Outcome run = profile(
      fake_python("device NVIDIA H200",
                  "mkdir -p \"$OUT\"; printf 'kernel,dtype,m,n,k,latency_us\\ntorch_linear,bf16,-4,4096,4096,11\\n' > "
                  "\"$OUT/gemm.csv\""));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("gemm.csv"), std::string::npos) << run.err;
}

TEST_F(ProfileCuda, the_plan_needs_no_gpu) {
  const Outcome run = profile(fake_python("no-device", "exit 1"), {"--plan", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  ASSERT_EQ(json.find("families")->items().size(), 1u);
  EXPECT_EQ(json.find("families")->items()[0].find("rows")->integer(), 2);
}

}  // namespace foretoken::profile_test
