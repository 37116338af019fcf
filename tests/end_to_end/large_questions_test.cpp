// Questions that are larger than anybody means them: answered or refused in words, in bounded memory and time.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "base/json.h"
#include "run.h"
#include "server_process.h"

namespace foretoken::large_questions_test {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // which map terabytes
constexpr const char *one_gigabyte = "", *two_gigabytes = "";
#else
constexpr const char* one_gigabyte = "ulimit -v 1000000; ";
constexpr const char* two_gigabytes = "ulimit -v 2000000; ";
#endif
constexpr const char* small_choices =
    "plan serve --model Llama-3.1-8B --slo ttft:500,tpot:50 --random-input-len 256 --random-output-len 16 --engines "
    "vllm "
    "--quantizations config --kv-cache-dtype auto -tp 1 -pp 1 --max-num-batched-tokens 0 --num-prompts 200 "
    "--most-simulated 4 --finalists 1 --request-rate 100 --json --hardware ";

struct ChildOutcome {
  int status = 0;
  std::string said;
};
ChildOutcome run_limited(const std::string& command) {
  ChildOutcome outcome;
  const std::vector<std::string> arguments = {"sh", "-c",
                                              std::string(one_gigabyte) + "exec " FORETOKEN_PROGRAM " " + command};
  outcome.status = run_child(arguments, [&](std::string_view line) { outcome.said += std::string(line) + "\n"; });
  return outcome;
}

std::string seconds_since(Clock::time_point begin) {
  return std::to_string(std::chrono::duration<double>(Clock::now() - begin).count()) + " s";
}

std::string post_run(int port, const std::string& body) {
  TestClient client(port);
  client.send_bytes(
      fmt::format("POST /api/run HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  return client.read_all();
}

void expect_bounded_search(const ChildOutcome& search) {
  ASSERT_EQ(search.status, 0) << search.said;
  const Json document = parse_json(search.said, "plan");
  const JsonView plan(document, "plan");
  EXPECT_LE(plan.at("layouts").integer(), 400'000);
  EXPECT_GT(plan.at("largest_gap_of_replicas").number(), 0) << "the answer says that numbers were left out";
  EXPECT_LE(plan.at("winner").at("devices").integer(), 4096);
}

TEST(LargeQuestions, a_search_over_thousands_of_devices_answers_in_bounded_memory) {
  expect_bounded_search(
      run_limited("plan serve --model Llama-3.1-8B --slo ttft:500,tpot:50 --random-input-len 256 --random-output-len "
                  "16 --engines vllm --quantizations config --kv-cache-dtype auto -tp 1 -pp 1 --request-rate 100 "
                  "--quick --json --hardware h100_sxm:4096"));
}

TEST(SlowQuestions, a_simulated_search_over_thousands_of_devices_answers_in_bounded_memory) {
  expect_bounded_search(run_limited(std::string(small_choices) + "h100_sxm:4096"));
}

TEST(LargeQuestions, a_search_over_few_devices_leaves_no_number_of_replicas_out) {
  const Outcome search = run_foretoken(std::string(small_choices) + "h100_sxm:4");
  ASSERT_EQ(search.status, 0) << search.err;
  const Json document = parse_json(search.out, "plan");
  EXPECT_FALSE(JsonView(document, "plan").has("largest_gap_of_replicas"));
}

// Asks for the progress of a search; the answer may never come.
void ask_with_progress(TestClient& client, const std::string& body) {
  client.send_bytes(
      fmt::format("POST /api/run HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  EXPECT_THAT(client.read_until("event: progress"), HasSubstr("200 OK")) << "progress is told from the start";
}

TEST(LargeQuestions, a_page_whose_search_is_under_way_ends_soon_after_it_is_told_to) {
  ServerProcess server("ui --no-open --threads 1", two_gigabytes);
  TestClient client(server.port);
  ask_with_progress(client,
                    R"({"command": "plan serve", "model": "Llama-3.1-8B", "hardware": "h100_sxm:4096",
                        "request_rate": 500, "slo": ["ttft<500ms@p99", "tpot<50ms@p99"], "num_prompts": 20000})");
  const Clock::time_point begin = Clock::now();
  server.stop();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2)) << seconds_since(begin);
  EXPECT_EQ(server.status, 0) << server.said;
}

TEST(LargeQuestions, a_search_that_nobody_waits_for_makes_room_for_the_next_question) {
  ServerProcess server("ui --no-open --threads 1");
  {
    const std::string body =
        R"({"command": "plan serve", "model": "Llama-3.1-8B", "hardware": "h100_sxm:4096",
            "request_rate": 500, "slo": ["ttft<500ms@p99"], "num_prompts": 20000})";
    TestClient leaves(server.port);
    ask_with_progress(leaves, body);
  }
  const std::string answer =
      post_run(server.port, R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "batch": 1})");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

TEST(LargeQuestions, the_page_takes_names_and_aliases_as_the_command_line_does) {
  ServerProcess server("ui --no-open");
  for (const char* fields :
       {R"("model": "llama-3.1-8b", "device": "H100")", R"("model": "META-LLAMA/Llama-3.1-8B", "device": "H100-SXM")",
        R"("model": "Qwen-72B-Chat", "device": "NVIDIA H100 80GB HBM3", "batch": 1)"}) {
    const std::string answer = post_run(server.port, fmt::format(R"({{"command": "step", {}}})", fields));
    EXPECT_THAT(answer, HasSubstr("200 OK")) << fields << "\n" << answer;
    EXPECT_THAT(answer, HasSubstr("--device h100_sxm")) << fields;
  }
  const std::string quantized =
      post_run(server.port, R"({"command": "step", "model": "qwen3-32b-NVFP4", "device": "b200_sxm"})");
  EXPECT_THAT(quantized, HasSubstr("--model nvidia/Qwen3-32B-NVFP4 ")) << "the format in the name stays";
  EXPECT_THAT(quantized, HasSubstr("NVFP4 in the model's name sets the format nvfp4"));
  const std::string unknown =
      post_run(server.port, R"({"command": "step", "model": "Llama-3.1-8C", "device": "h100_sxm"})");
  EXPECT_THAT(unknown, HasSubstr("400 "));
  EXPECT_THAT(unknown, HasSubstr("Llama-3.1-8B")) << "the nearest name";
}

std::string embedding_request(int inputs, int dimensions) {
  std::string list;
  for (int i = 0; i < inputs; ++i) list += i > 0 ? R"(,"a")" : R"("a")";
  return fmt::format(R"({{"input": [{}], "dimensions": {}}})", list, dimensions);
}

TEST(LargeQuestions, embeddings_beyond_what_an_answer_holds_are_refused_and_the_largest_comes_whole) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device h100_sxm --time-scale 1000", two_gigabytes);
  const TestAnswer refused = ask(server.port, "POST", "/v1/embeddings", embedding_request(1000, 65'536));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("1000 inputs with 65536 dimensions each give 65536000 numbers"));
  const TestAnswer largest = ask(server.port, "POST", "/v1/embeddings", embedding_request(200, 5'000));
  ASSERT_EQ(largest.status, 200);
  const Json document = parse_json(largest.body, "answer");
  const std::vector<JsonView> data = JsonView(document, "answer").at("data").items();
  ASSERT_EQ(data.size(), 200U);
  EXPECT_EQ(data.back().at("embedding").items().size(), 5000U);
}

TEST(LargeQuestions, answers_of_very_many_tokens_are_refused_streamed_or_not) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device h100_sxm");
  const std::string body = R"({"prompt": "a", "max_tokens": 100000, "n": 100, "ignore_eos": true)";
  const TestAnswer refused = ask(server.port, "POST", "/v1/completions", body + "}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("10000000 tokens"));
  TestClient streams(server.port);
  streams.send_request("POST", "/v1/completions", body + R"(, "stream": true})");
  EXPECT_THAT(streams.read_until("10000000 tokens"), HasSubstr("400 Bad Request"));
}

}  // namespace foretoken::large_questions_test
