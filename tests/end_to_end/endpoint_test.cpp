// The program itself as a server: started, asked, told to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "base/json.h"
#include "run.h"
#include "server_process.h"

namespace foretoken::end_to_end_endpoint_test {

TEST(EndpointCommand, serves_at_the_predicted_speed_until_it_is_told_to_stop) {
  ServerProcess server(
      "endpoint --model Llama-3.1-8B --device h100_sxm --replicas 2 --time-scale 100 --served-model-name mine");
  const TestAnswer answer = ask(server.port, "POST", "/v1/chat/completions",
                                R"({"model": "mine", "messages": [{"role": "user", "content": "Hello"}],
                                    "max_tokens": 50, "ignore_eos": true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = parse_json(answer.body, "answer");
  const JsonView schedule = JsonView(json, "answer").at("choices").items().front().at("foretoken");

  // The same request alone, simulated: 5 tokens of text, role and end.
  const Outcome serve = run_foretoken(
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 1 --request-rate 1 --random-input-len 5 "
      "--random-output-len 50 --random-range-ratio 0 --no-intervals --json");
  ASSERT_EQ(serve.status, 0) << serve.err;
  const Json simulated = parse_json(serve.out, "serve");
  EXPECT_NEAR(schedule.at("ttft_s").number() * 1000, JsonView(simulated, "serve").at("mean_ttft_ms").number(), 0.1);

  server.stop();
  EXPECT_EQ(server.status, 0);
  EXPECT_THAT(server.said, testing::HasSubstr("1 request: 1 answered"));
}

TEST(EndpointCommand, refuses_addresses_and_settings_that_cannot_be_served) {
  const std::string command = "endpoint --model Llama-3.1-8B --device h100_sxm ";
  EXPECT_EQ(run_foretoken(command + "--host nowhere").status, 2);
  EXPECT_EQ(run_foretoken(command + "--enable-lora").status, 2);
  EXPECT_EQ(run_foretoken(command + "--time-scale 0").status, 2);
}

}  // namespace foretoken::end_to_end_endpoint_test
