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
  const Outcome run = profile(fake_python("cuda NVIDIA H200", writes_two_rows), {"--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_EQ(json.find("device")->string(), "h200_sxm");
  EXPECT_EQ(json.find("rows")->integer(), 2);
  EXPECT_TRUE(fs::exists(folder_ / "measured" / "h200_sxm" / "gemm.csv"));
}

TEST_F(ProfileCuda, the_answer_says_how_to_fit_and_validate) {
  const Outcome run = profile(fake_python("cuda NVIDIA H200", writes_two_rows));
  for (const char* command :
       {"foretoken fit kernels --data", "foretoken fit power --data", "foretoken validate kernels"}) {
    EXPECT_NE(run.out.find(command), std::string::npos) << run.out;
  }
}

TEST_F(ProfileCuda, flags_reach_the_script) {
  profile(fake_python("cuda NVIDIA H200", writes_two_rows), {"--only", "gemm,norm", "--minutes", "3", "--scale", "2"});
  EXPECT_NE(calls().find("--minutes 3 --scale 2 --families gemm,norm --progress"), std::string::npos) << calls();
}

TEST_F(ProfileCuda, measurements_are_not_continued_unasked) {
  const std::string python = fake_python("cuda NVIDIA H200", writes_two_rows);
  ASSERT_EQ(profile(python).status, 0);
  const Outcome again = profile(python);
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("--resume"), std::string::npos) << again.err;
  EXPECT_EQ(profile(python, {"--resume"}).status, 0);
}

TEST_F(ProfileCuda, a_device_that_the_library_lacks_is_measured_all_the_same) {
  const Outcome run = profile(fake_python("cuda NVIDIA Xyz-9", writes_two_rows), {"--json"});
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
  const Outcome run = profile(fake_python("cuda NVIDIA H200", "echo 'device error: lost'; exit 1"));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("device error: lost"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("--resume"), std::string::npos) << run.err;
}

TEST_F(ProfileCuda, broken_files_of_a_sweep_are_named) {
  const Outcome run = profile(
      fake_python("cuda NVIDIA H200",
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

// A finished sweep of an H200, cut to a few hundred multiplies.
class ProfileInstall : public ProfileCuda {
 protected:
  ProfileInstall() {
    setenv("FORETOKEN_HOME", (folder_ / "home").c_str(), 1);
    const fs::path measured = FORETOKEN_SOURCE_DIR "/data/measured/h200_sxm";
    fs::create_directories(sweep());
    fs::copy_file(measured / "meta.json", sweep() / "meta.json");
    const std::string rows = read_file(measured / "gemm.csv", 1 << 20);
    size_t end = 0;
    for (int i = 0; i < 150; ++i) end = rows.find('\n', end) + 1;
    write_file(sweep() / "gemm.csv", rows.substr(0, end));
  }
  ~ProfileInstall() override { setenv("FORETOKEN_HOME", "", 1); }

  fs::path sweep() const { return folder_ / "sweep"; }
  Outcome install(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"profile", "cuda", "--install", "my_h200", "--from", sweep().string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_foretoken(words);
  }
};

TEST_F(ProfileInstall, a_finished_sweep_becomes_a_device_of_every_command) {
  const Outcome installed = install({"--json"});
  ASSERT_EQ(installed.status, 0) << installed.err;
  const Json answer = parse_json(installed.out, "answer");
  EXPECT_EQ(answer.find("device")->string(), "my_h200");
  EXPECT_EQ(answer.find("sheet_of")->string(), "h200_sxm");

  const Json devices = parse_json(run_foretoken("devices --json").out, "devices");
  EXPECT_EQ(devices.find("own_devices")->items().size(), 1U);
  EXPECT_NE(run_foretoken("devices").out.find("your own"), std::string::npos);
  EXPECT_NE(in_one_line(run_foretoken("devices my_h200").out).find("Your own device: measured here"),
            std::string::npos);

  const Outcome kernel = run_foretoken("kernel gemm --device my_h200 --m 512 --n 4096 --k 4096 --json");
  ASSERT_EQ(kernel.status, 0) << kernel.err;
  EXPECT_EQ(parse_json(kernel.out, "kernel").find("swept_device")->string(), "my_h200");
  for (const char* line :
       {"step --model Llama-3.1-8B --device my_h200 --batch 8 --context-len 1000",
        "serve --model Llama-3.1-8B --device my_h200 --request-rate 2 --num-prompts 4 --max-model-len 4096",
        "plan serve --quick --model Llama-3.2-1B --hardware my_h200:1 --request-rate 2 --random-input-len 128 "
        "--random-output-len 32 --num-prompts 20 --price my_h200=3 --engines vllm --slo ttft:2000,tpot:100"}) {
    const Outcome run = run_foretoken(line);
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
  }
}

// A search simulates hundreds of runs.
class SlowProfileInstall : public ProfileInstall {};

TEST_F(SlowProfileInstall, a_search_plans_on_the_installed_device) {
  ASSERT_EQ(install().status, 0);
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.2-1B --hardware my_h200:1 --request-rate 2 --random-input-len 128 "
      "--random-output-len 32 --num-prompts 300 --price my_h200=3 --engines vllm --slo ttft:2000,tpot:100 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json plan = parse_json(run.out, "plan");
  const JsonView winner = JsonView(plan, "plan").at("winner");
  EXPECT_EQ(winner.at("device").string(), "my_h200");
  EXPECT_GT(winner.at("capacity_requests_per_s").at("value").number(), 2);
}

TEST_F(ProfileInstall, a_measured_gpu_is_installed_at_once) {
  const std::string copies = "mkdir -p \"$OUT\"; cp " + sweep().string() + "/* \"$OUT\"\necho '150 rows, 0 skipped'";
  const Outcome run = profile(fake_python("cuda NVIDIA H200", copies), {"--install", "my_h200"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("installed my_h200"), std::string::npos) << run.out;
  EXPECT_EQ(run_foretoken("devices my_h200").status, 0);
}

TEST_F(ProfileInstall, what_cannot_be_installed_is_refused) {
  EXPECT_EQ(run_foretoken("profile cuda --from " + sweep().string()).status, 2);
  const Outcome taken = run_foretoken("profile cuda --install h100_sxm --from " + sweep().string());
  EXPECT_EQ(taken.status, 2);
  EXPECT_NE(taken.err.find("--install"), std::string::npos) << taken.err;
  const Outcome nothing = run_foretoken("profile cuda --install mine --from " + folder_.string());
  EXPECT_EQ(nothing.status, 2);
  EXPECT_NE(nothing.err.find("meta.json"), std::string::npos) << nothing.err;
}

TEST_F(ProfileCuda, a_pytorch_for_the_other_vendor_is_sent_to_its_command) {
  const Outcome run = profile(fake_python("rocm AMD Instinct MI300X", writes_two_rows));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(in_one_line(run.err).find("foretoken profile rocm"), std::string::npos) << run.err;
  const Outcome rocm =
      run_foretoken({"profile", "rocm", "--python", fake_python("rocm AMD Instinct MI300X", writes_two_rows), "--out",
                     (folder_ / "measured").string(), "--json"});
  ASSERT_EQ(rocm.status, 0) << rocm.err;
  EXPECT_EQ(parse_json(rocm.out, "answer").find("device")->string(), "mi300x");
}

}  // namespace foretoken::profile_test
