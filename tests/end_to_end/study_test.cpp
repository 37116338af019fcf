// Studies: one table of many plans, resumed after a kill with the same bytes.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "plan/store/result_store.h"

namespace foretoken::study_test {

using testing::HasSubstr;

class PlanStudy : public CommandTest {
 protected:
  // Four cases by closed form.
  std::string quick_study() const {
    return write("quick.yaml",
                 "title: Small\nmodels: [Llama-3.1-8B, Qwen3-8B]\nhardware: [1xH100]\n"
                 "traffic:\n  - {traffic: chat, request_rate: 2}\nengines: [vllm, trtllm]\n"
                 "settings: {quick: true, quantizations: config}\n");
  }
  // Four cases of a second each.
  std::string simulated_study() const {
    return write("simulated.yaml",
                 "models: Llama-3.1-8B\nhardware: [h100_sxm:1, l40s:1]\n"
                 "traffic:\n  - {name: short, random_input_len: 256}\n  - {name: long, random_input_len: 1024}\n"
                 "engines: vllm\n"
                 "settings: {slo: 'ttft:800,tpot:60', dataset_name: lognormal, random_output_len: 64, tier: roofline,\n"
                 "  num_prompts: 300, quantizations: config, kv_cache_dtype: auto, max_num_seqs: [0],\n"
                 "  max_num_batched_tokens: [0], most_simulated: 4, finalists: 1}\n");
  }
  std::string bytes(const std::string& folder, const std::string& file) const {
    const std::vector<uint8_t> raw = read_raw_file(path(folder + "/" + file), 1U << 26U);
    return {raw.begin(), raw.end()};
  }
};

TEST_F(PlanStudy, is_a_table_a_page_and_a_database_with_a_row_for_every_case) {
  const Outcome run = run_foretoken("study " + quick_study() + " --out " + path("out") + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "out");
  EXPECT_EQ(json.find("cases")->items().size(), 4u);
  EXPECT_EQ(json.find("best")->items().size(), 2u);
  for (const Json& row : json.find("cases")->items()) {
    EXPECT_EQ(row.find("status")->string(), "serves");
    EXPECT_GT(row.find("capacity_requests_per_s")->number(), 2);
    EXPECT_GT(row.find("usd_per_million_output_tokens")->number(), 0);
    EXPECT_THAT(row.find("command")->string(), HasSubstr("foretoken plan serve"));
  }
  // vLLM and TensorRT-LLM by closed form: intervals that overlap.
  for (const Json& best : json.find("best")->items()) {
    EXPECT_EQ(best.find("by")->string(), "usd_per_million_output_tokens");
    EXPECT_EQ(best.find("tied")->items().size(), 1u);
  }
  EXPECT_THAT(bytes("out", "study.csv"), HasSubstr("model,hardware,traffic,engines,status"));
  EXPECT_THAT(bytes("out", "study.html"), HasSubstr("Qwen3-8B"));
  EXPECT_THAT(bytes("out", "study.sqlite"), HasSubstr("SQLite format 3"));
}

TEST_F(PlanStudy, without_a_price_the_best_case_is_not_called_the_cheapest) {
  const std::string file = write("unpriced.yaml",
                                 "models: Llama-3.1-8B\nhardware: [1xh800_sxm, 2xh800_sxm]\ntraffic:\n"
                                 "  - {traffic: chat, request_rate: 0.1}\nengines: vllm\n"
                                 "settings: {quick: true, slo: 'ttft:5000,tpot:500'}\n");
  const Outcome run = run_foretoken("study " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("* 1 x TP1"));
  EXPECT_THAT(run.out, HasSubstr("most requests/s per GPU"));
  EXPECT_THAT(run.out, HasSubstr("tied with"));
}

TEST_F(PlanStudy, a_row_is_the_answer_of_its_command) {
  const Outcome run = run_foretoken("study " + quick_study() + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json study = parse_json(run.out, "study");
  const Json& row = study.find("cases")->items().back();
  const std::string line = row.find("command")->string();
  const Outcome alone = run_foretoken(line.substr(line.find(' ') + 1) + " --json");
  ASSERT_EQ(alone.status, 0) << alone.err;
  const Json answer = parse_json(alone.out, "alone");
  EXPECT_EQ(answer.find("winner")->find("layout")->string(), row.find("layout")->string());
  EXPECT_EQ(answer.find("winner")->find("capacity_requests_per_s")->find("value")->number(),
            row.find("capacity_requests_per_s")->number());
}

TEST_F(PlanStudy, a_case_that_cannot_work_has_its_reason_and_the_others_their_answers) {
  const std::string file = write("amd.yaml",
                                 "models: Llama-3.1-8B\nhardware: [1xH100, 1xMI300X]\ntraffic: chat\n"
                                 "engines: trtllm\nsettings: {quick: true}\n");
  const Outcome run = run_foretoken("study " + file);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out), HasSubstr("1 of 2 cases can be served"));
  EXPECT_THAT(in_one_line(run.out), HasSubstr("Cases that cannot be served"));
}

TEST_F(PlanStudy, wrong_files_are_refused_before_anything_is_answered) {
  const auto study = [&](const std::string& text) { return run_foretoken("study " + write("wrong.yaml", text)); };
  const std::string rest = "\nhardware: [1xH100]\ntraffic: chat\n";
  expect_refused(study("models: [Lama-3.1-8C]" + rest), "wrong.yaml:1");
  expect_refused(study("models: [Llama-3.1-8B]\nhardware:\n  - 1xH100\n  - 1xH10000\ntraffic: chat\n"), "wrong.yaml:4");
  expect_refused(study("models: [Llama-3.1-8B]" + rest + "settings: {quik: true}\n"), "did you mean quick?");
  expect_refused(study("models: [Llama-3.1-8B]" + rest + "settings: {slo: fast}\n"), "wrong.yaml");
  expect_refused(study("models: [Llama-3.1-8B]" + rest + "settings: {threads: 2}\n"), "no threads here");
  expect_refused(study("models: [Llama-3.1-8B]" + rest + "engines: [vllm, vlllm]\n"), "did you mean vllm?");
  expect_refused(study("models: [Llama-3.1-8B]\nhardware: 0xH100\ntraffic: chat\n"), "wrong.yaml:2");
  expect_refused(study("models: [Llama-3.1-8B]\nhardware: 1xH100\ntraffic: chatt\n"), "wrong.yaml:3");
  expect_refused(study("models: [Llama-3.1-8B]" + rest + "settings: {name: x}\n"), "name");
  expect_refused(study("models: {"), "wrong.yaml");
  expect_refused(run_foretoken("study " + path("missing.yaml")), "missing.yaml");
}

TEST_F(PlanStudy, a_case_is_answered_again_when_the_file_of_its_device_changed) {
  const auto device = [&](int bandwidth) {
    return write("my_gpu.json", R"({
      "name": "my_gpu", "title": "My GPU", "vendor": "NVIDIA", "kind": "gpu", "architecture": "Rubin",
      "instruction_set": "sm_140", "like": "b200_sxm",
      "processors": {"value": 224, "source": "made up"},
      "boost_clock_mhz": {"value": 2100, "source": "made up"},
      "last_level_cache_mib": {"value": 192, "source": "made up"},
      "memory_type": {"value": "hbm4", "source": "made up"},
      "memory_gb": {"value": 288, "source": "made up"},
      "memory_bandwidth_gb_per_s": {"value": )" +
                                    std::to_string(bandwidth) + R"(, "source": "made up"},
      "power_limit_w": {"value": 1800, "source": "made up"},
      "host_bandwidth_gb_per_s": {"value": 256, "source": "made up"},
      "dense_peak_tflops": {"fp32": {"value": 130, "source": "made up"}, "bf16": {"value": 4000, "source": "made up"}}
    })");
  };
  const std::string study = write("mine.yaml", "models: Llama-3.1-8B\nhardware: '" + device(4000) +
                                                   ":1'\ntraffic:\n  - {traffic: chat, request_rate: 0.1}\n"
                                                   "engines: vllm\nsettings: {quick: true, quantizations: config,\n"
                                                   "  slo: 'ttft:5000,tpot:500'}\n");
  const auto capacity = [&] {
    const Outcome run = run_foretoken("study " + study + " --json --store " + path("kept.sqlite"));
    EXPECT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, "out");
    return json.find("cases")->items().at(0).find("capacity_requests_per_s")->number();
  };
  const double slow = capacity();
  device(16000);
  const double fast = capacity();
  EXPECT_GT(fast, slow);
  EXPECT_EQ(capacity(), fast);
}

TEST_F(PlanStudy, that_is_killed_and_asked_again_ends_with_the_same_bytes) {
  const std::string file = simulated_study();
  const Outcome whole = run_foretoken("study " + file + " --out " + path("whole") + " --threads 1");
  ASSERT_EQ(whole.status, 0) << whole.err;
  const std::string store = path("killed/store.sqlite");
  const auto results = [&] {
    try {
      return ResultStore::counts_of(store).results;
    } catch (const InputError&) {
      return int64_t{0};  // not begun
    }
  };
  const std::string line = "exec " FORETOKEN_PROGRAM " study " + file + " --threads 1 --out " + path("killed");
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", (line + " > /dev/null").c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (results() < 2 && waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_LT(results(), 4) << "the study is too short to be killed";
  const Outcome again = run_foretoken("study " + file + " --threads 1 --out " + path("killed"));
  ASSERT_EQ(again.status, 0) << again.err;
  const StoreCounts counts = ResultStore::counts_of(store);
  EXPECT_GE(counts.results, 4) << "the cases, and simulations of the last ones";
  EXPECT_LE(counts.begun, counts.results + 2) << "finished cases are not answered again";
  EXPECT_EQ(bytes("killed", "study.csv"), bytes("whole", "study.csv"));
  EXPECT_EQ(bytes("killed", "study.sqlite"), bytes("whole", "study.sqlite"));
}

}  // namespace foretoken::study_test
