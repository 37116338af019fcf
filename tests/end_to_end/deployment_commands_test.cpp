// foretoken replay-run, calibrate, check-run, and --deployment: from a run folder to predictions that know the server.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "serving/runs/run_folder.h"

namespace foretoken::deployment_commands_test {

using testing::HasSubstr;
using testing::Not;

class DeploymentCommands : public CommandTest {
 protected:
  const std::string example_ = FORETOKEN_SOURCE_DIR "/examples/runs/small";

  Json json_of(const std::string& command) const {
    return parse_json(run_foretoken(command + " --json").out, "answer");
  }
  // The example with all times longer.
  std::string slower(double factor) const {
    MeasuredRun run = read_run_folder(example_);
    for (MeasuredRequest& request : run.requests) {
      *request.ttft_s *= factor;
      *request.e2e_s *= factor;
    }
    write_run_folder(path("slower"), run);
    return path("slower");
  }
};

TEST_F(DeploymentCommands, a_calibrated_deployment_predicts_its_run_and_tells_when_it_drifts) {
  const std::string file = path("mine.json");
  const Outcome calibrated = run_foretoken("calibrate " + example_ + " --no-suggest --out " + file);
  ASSERT_EQ(calibrated.status, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("host"));

  const std::string serve =
      "serve --model Llama-3.1-8B --device h100_sxm --engine vllm-0.19 --stack vllm-0.11 --no-async-scheduling "
      "--max-model-len 8192 --trace " +
      example_ + "/requests.csv";
  const auto tpot = [&](const std::string& more) { return json_of(serve + more).find("mean_tpot_ms")->number(); };
  EXPECT_NEAR(tpot("") / 9.86, 0.887, 0.01);
  EXPECT_NEAR(tpot(" --deployment " + file) / 9.86, 1, 0.01);
  // Another GPU is not that deployment.
  const std::string other = " --device a100_sxm";
  EXPECT_EQ(tpot(other), tpot(other + " --deployment " + file));

  const std::string step = "step --model Llama-3.1-8B --device h100_sxm --stack vllm-0.11 --batch 8 --context-len 400";
  const auto width = [&](const std::string& more) {
    const Json answer = json_of(step + more);
    const Json* seconds = answer.find("seconds");
    return seconds->find("high")->number() / seconds->find("low")->number();
  };
  EXPECT_LT(width(" --deployment " + file), width("")) << "its intervals are narrower";

  EXPECT_EQ(run_foretoken("check-run " + example_ + " --deployment " + file).status, 0);
  const Outcome drifted = run_foretoken("check-run " + slower(1.3) + " --deployment " + file);
  EXPECT_EQ(drifted.status, 3);
  EXPECT_THAT(drifted.out, HasSubstr("drifts"));
  EXPECT_FALSE(json_of("check-run " + path("slower") + " --deployment " + file).find("agrees")->boolean());
}

TEST_F(DeploymentCommands, a_run_without_model_and_device_takes_those_of_the_deployment) {
  const std::string file = path("mine.json");
  ASSERT_EQ(run_foretoken("calibrate " + example_ + " --no-suggest --out " + file).status, 0);
  MeasuredRun run = read_run_folder(example_);
  run.model.clear();
  run.device.clear();
  run.deployment = Json::object({{"max_model_len", 8192}});
  write_run_folder(path("nameless"), run);
  const Outcome checked = run_foretoken("check-run " + path("nameless") + " --deployment " + file);
  EXPECT_EQ(checked.status, 0) << checked.err << checked.out;
  EXPECT_THAT(run_foretoken("replay-run " + path("nameless")).err, HasSubstr("--model"));
}

TEST_F(DeploymentCommands, parts_of_a_replayed_run_hold_all_requests_of_a_kind) {
  MeasuredRun run = read_run_folder(example_);
  for (size_t i = 0; i < run.requests.size(); ++i) {
    run.requests[i].input_tokens = i % 4 == 0 ? 600 : 400;
    run.requests[i].output_tokens = 60;
  }
  write_run_folder(path("alike"), run);
  const Json answer = json_of("replay-run " + path("alike"));
  const std::vector<Json>& parts = answer.find("by_context")->items();
  ASSERT_EQ(parts.size(), 2U) << "two kinds of requests";
  EXPECT_EQ(parts[0].find("requests")->integer(), 60);
  EXPECT_EQ(parts[1].find("requests")->integer(), 20);
}

TEST_F(DeploymentCommands, a_replayed_run_names_what_explains_the_difference) {
  const Json answer = json_of("replay-run " + example_ + " --requests");
  EXPECT_FALSE(answer.find("agrees")->boolean());
  // Its steps have a slower host, and kernels of an earlier fit: one of the first two facts is the host, and explains
  // it.
  const std::vector<Json>& explanations = answer.find("explanations")->items();
  ASSERT_GT(explanations.size(), 2U);
  const bool is_first = explanations[0].find("kind")->string() == "host";
  const Json& host = explanations[is_first ? 0 : 1];
  EXPECT_EQ(host.find("kind")->string(), "host");
  EXPECT_GT(host.find("explains")->number(), 0.95);
  EXPECT_LT(explanations[2].find("explains")->number(), 0.6);
  EXPECT_EQ(answer.find("requests")->items().size(), 80U);
  const Outcome page = run_foretoken("replay-run " + example_ + " --html " + path("page.html"));
  EXPECT_EQ(page.status, 0) << page.err;
  EXPECT_THAT(page.out, Not(HasSubstr("{")));
  EXPECT_THAT(read_file(path("page.html"), 1 << 24), HasSubstr("times as long for each step"));
}

TEST_F(DeploymentCommands, flags_go_before_what_the_run_says_of_itself) {
  EXPECT_EQ(json_of("replay-run " + example_ + " --device a100_sxm").find("device")->string(), "a100_sxm");
  const Outcome unknown = run_foretoken("replay-run " + example_ + " --model nothing-like-it");
  EXPECT_EQ(unknown.status, 2);
}

TEST_F(DeploymentCommands, what_is_missing_or_wrong_is_named) {
  write("empty/run.json", R"({"format": 1})");
  EXPECT_THAT(run_foretoken("calibrate " + path("empty")).err, HasSubstr("a summary in run.json"));
  EXPECT_THAT(run_foretoken("calibrate " + path("nowhere")).err, HasSubstr("nowhere: no such file"));
  EXPECT_THAT(run_foretoken("check-run " + example_).err, HasSubstr("--deployment"));
  write("bad.json", R"({"format": 1, "engine": "vllm"})");
  EXPECT_THAT(run_foretoken("check-run " + example_ + " --deployment " + path("bad.json")).err, HasSubstr("bad.json"));
  write("nameless/run.json", R"({"format": 1, "summary": {"e2e_s": {"mean": 1}}})");
  EXPECT_THAT(run_foretoken("calibrate " + path("nameless")).err, HasSubstr("--model"));
}

}  // namespace foretoken::deployment_commands_test
