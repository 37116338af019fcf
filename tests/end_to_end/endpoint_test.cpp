// The program itself as a server: started, asked, told to stop.
#include <signal.h>

#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "base/child_process.h"
#include "base/json.h"
#include "run.h"

namespace foretoken {
namespace {

class ServerProcess {
 public:
  explicit ServerProcess(const std::string& flags) {
    // The shell says its number, which is then the program's.
    const std::string line = "echo $$; exec " FORETOKEN_PROGRAM " endpoint --port 0 " + flags;
    thread_ = std::thread([this, line] {
      const std::vector<std::string> arguments = {"sh", "-c", line};
      status = run_child(arguments, [this](std::string_view text) { take(std::string(text)); });
    });
    pid = pid_.get_future().get();
    port = port_.get_future().get();
  }
  ~ServerProcess() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    kill(pid, SIGTERM);
    thread_.join();
  }

  pid_t pid = 0;
  int port = 0, status = -1;
  std::string said;

 private:
  void take(const std::string& line) {
    constexpr std::string_view before_port = "http://127.0.0.1:";
    if (lines_++ == 0) return pid_.set_value(std::stoi(line));
    if (const size_t at = line.find(before_port); at != std::string::npos) {
      return port_.set_value(std::stoi(line.substr(at + before_port.size())));
    }
    said += line + "\n";
  }

  int lines_ = 0;
  std::promise<pid_t> pid_;
  std::promise<int> port_;
  std::thread thread_;
};

TEST(EndpointCommand, serves_at_the_predicted_speed_until_it_is_told_to_stop) {
  ServerProcess server("--model Llama-3.1-8B --device h100_sxm --replicas 2 --time-scale 100 --served-model-name mine");
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
  EXPECT_THAT(server.said, testing::HasSubstr("1 requests: 1 answered"));
}

TEST(EndpointCommand, refuses_addresses_and_settings_that_cannot_be_served) {
  const std::string command = "endpoint --model Llama-3.1-8B --device h100_sxm ";
  EXPECT_EQ(run_foretoken(command + "--host nowhere").status, 2);
  EXPECT_EQ(run_foretoken(command + "--enable-lora").status, 2);
  EXPECT_EQ(run_foretoken(command + "--time-scale 0").status, 2);
}

}  // namespace
}  // namespace foretoken
