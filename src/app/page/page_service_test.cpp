#include "app/page/page_service.h"

#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "app/page/page_html.h"
#include "base/base64.h"
#include "base/json.h"

namespace foretoken::page_service_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* small_step = R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "batch": 1})";

class PageServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    service_.emplace(Library(FORETOKEN_SOURCE_DIR "/data"), PageSettings{.further_hosts = {}, .pool = {.threads = 1}});
    HttpServerSettings settings{.port = 0};
    settings.limits.max_body_bytes = 4096;
    server_.emplace(settings, *service_);
    service_->answer_through(*server_);
    thread_ = std::thread([] { server_->run(); });
  }
  static void TearDownTestSuite() {
    server_->stop();
    thread_.join();
    server_.reset();
    service_.reset();
  }

  static TestAnswer send(std::string_view method, std::string_view path, std::string_view body = "",
                         std::string_view headers = "Content-Type: application/json\r\n",
                         std::string_view host = "127.0.0.1") {
    TestClient client(server_->port());
    client.send_bytes(fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{}",
                                  method, path, host, headers, body.size(), body));
    return parsed_answer(client.read_all());
  }
  static std::string error_of(const TestAnswer& answer) {
    const Json document = parse_json(answer.body, "answer");
    return JsonView(document, "answer").at("error").at("message").string();
  }

  static inline std::optional<PageService> service_;
  static inline std::optional<HttpServer> server_;
  static inline std::thread thread_;
};

TEST_F(PageServiceTest, the_page_comes_whole_and_cannot_be_framed) {
  const TestAnswer answer = send("GET", "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, page_html());
  EXPECT_THAT(answer.head, HasSubstr("X-Frame-Options: DENY"));
}

TEST_F(PageServiceTest, the_page_asks_no_other_server) {
  // Addresses in it are names of namespaces and texts for people: nothing is fetched, no style or script lies
  // elsewhere.
  for (const char* reference : {"src=\"http", "href=\"http", "@import", "url(http", "<script src"}) {
    EXPECT_THAT(std::string(page_html()), Not(HasSubstr(reference)));
  }
  EXPECT_THAT(std::string(page_html()), HasSubstr("default-src 'none'"));
}

TEST_F(PageServiceTest, the_library_holds_devices_models_and_accuracy) {
  const Json facts = parse_json(send("GET", "/api/library").body, "facts");
  for (const char* key : {"fields", "examples", "drawn", "devices", "models", "stacks", "scenarios", "accuracy"}) {
    EXPECT_NE(facts.find(key), nullptr) << key;
  }
  EXPECT_GT(facts.find("devices")->items().size(), 40U);
}

TEST_F(PageServiceTest, a_command_answers_with_the_line_that_repeats_it) {
  const TestAnswer answer = send("POST", "/api/run", small_step);
  EXPECT_EQ(answer.status, 200);
  const Json document = parse_json(answer.body, "answer");
  EXPECT_EQ(document.find("command_line")->string(), "foretoken step --model Llama-3.1-8B --device h100_sxm --batch 1");
  EXPECT_GT(document.find("answer")->find("seconds")->find("value")->number(), 0);
}

TEST_F(PageServiceTest, an_answer_that_says_no_is_an_answer_with_its_exit_status) {
  const TestAnswer answer = send("POST", "/api/run", R"({"command": "train", "model": "Llama-3.1-405B",
      "cluster": "h100_ib_rail", "devices": 8, "tensor_parallel_size": 8, "global_batch_size": 8})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json document = parse_json(answer.body, "answer");
  EXPECT_EQ(document.find("exit_status")->integer(), 3);
  EXPECT_THAT(document.find("answer")->find("failure")->string(), StartsWith("Out of memory"));
}

TEST_F(PageServiceTest, an_engine_that_does_not_start_is_told_with_what_helps) {
  const TestAnswer answer =
      send("POST", "/api/run", R"({"command": "serve", "model": "Llama-3.1-70B", "device": "h100_sxm"})");
  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(error_of(answer), StartsWith("Out of memory"));
  EXPECT_THAT(error_of(answer), HasSubstr("Any of these would do"));
}

TEST_F(PageServiceTest, events_tell_progress_and_end_with_the_answer) {
  const TestAnswer answer =
      send("POST", "/api/run",
           R"({"command": "serve", "model": "Llama-3.1-8B", "device": "h100_sxm", "num_prompts": 200,
               "random_output_len": 8, "intervals": false})",
           "Content-Type: application/json; charset=utf-8\r\nAccept: text/event-stream\r\n");
  EXPECT_THAT(answer.head, HasSubstr("text/event-stream"));
  EXPECT_THAT(answer.body, StartsWith("event: progress\ndata: {"));
  EXPECT_THAT(answer.body, HasSubstr("event: answer\ndata: {\"command_line\""));
}

TEST_F(PageServiceTest, wrong_input_is_told_with_what_was_expected) {
  const TestAnswer unknown = send("POST", "/api/run", R"({"command": "step", "modle": "x"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(error_of(unknown), HasSubstr("model"));
  const TestAnswer wrong = send("POST", "/api/run", R"({"command": "step", "model": "Llama-3.1-8B"})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_THAT(error_of(wrong), HasSubstr("--device"));
  EXPECT_EQ(send("POST", "/api/run", "{").status, 400);
}

TEST_F(PageServiceTest, other_sites_bodies_and_methods_are_refused) {
  EXPECT_EQ(send("POST", "/api/run", small_step, "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(
      send("POST", "/api/run", small_step, "Content-Type: application/json\r\nOrigin: http://evil.example\r\n").status,
      403);
  EXPECT_EQ(send("GET", "/", "", "", "evil.example").status, 403);
  EXPECT_EQ(send("GET", "/api/library", "", "", "evil.example").status, 403);
  EXPECT_EQ(send("POST", "/api/run", std::string(5000, ' ')).status, 413);
  EXPECT_EQ(send("GET", "/api/run").status, 405);
  EXPECT_EQ(send("POST", "/").status, 405);
  EXPECT_EQ(send("GET", "/../data").status, 404);
}

TEST_F(PageServiceTest, two_questions_are_answered_side_by_side) {
  const TestAnswer answer = send("POST", "/api/run",
                                 R"({"command": "compare",
          "first": {"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "batch": 1},
          "second": {"command": "step", "model": "Llama-3.1-8B", "device": "a100_sxm", "batch": 1}})");
  EXPECT_EQ(answer.status, 200);
  const Json document = parse_json(answer.body, "answer");
  const JsonView compared = JsonView(document, "answer").at("answer");
  EXPECT_EQ(compared.at("settings").items().size(), 1U);
  EXPECT_EQ(compared.at("settings").items().front().at("second").string(), "a100_sxm");
  EXPECT_LT(compared.at("headlines").items().front().at("first").number(),
            compared.at("headlines").items().front().at("second").number());
}

TEST_F(PageServiceTest, a_client_that_leaves_frees_the_only_worker) {
  // Each would run for hours: a simulation, and a search on threads of its own.
  const std::string long_runs[] = {
      R"({"command": "serve", "model": "Llama-3.1-8B", "device": "h100_sxm", "num_prompts": 20000,
          "random_output_len": 100000, "intervals": false})",
      R"({"command": "plan serve", "model": "Llama-3.1-8B", "hardware": "h100_sxm:64", "slo": "ttft:500",
          "most_simulated": 500, "finalists": 50, "random_output_len": 500})"};
  for (const std::string& long_run : long_runs) {
    {
      TestClient client(server_->port());
      client.send_bytes(
          fmt::format("POST /api/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      "Accept: text/event-stream\r\nContent-Length: {}\r\n\r\n{}",
                      long_run.size(), long_run));
      client.read_until("\r\n\r\n");
    }
    EXPECT_EQ(send("POST", "/api/run", small_step).status, 200);
  }
}

TEST_F(PageServiceTest, a_question_that_comes_again_has_the_same_answer) {
  const TestAnswer first = send("POST", "/api/run", small_step);
  const TestAnswer again = send("POST", "/api/run", small_step);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, again.body);
  const TestAnswer events =
      send("POST", "/api/run", small_step, "Content-Type: application/json\r\nAccept: text/event-stream\r\n");
  EXPECT_THAT(events.body, HasSubstr("event: answer\ndata: " + first.body));
}

TEST_F(PageServiceTest, a_measured_run_comes_with_its_question) {
  const auto ask_run = [](const std::string& deployment) {
    const auto file = [](const std::string& name, const std::string& content) {
      return Json::object({{"name", name}, {"content", base64(std::vector<uint8_t>(content.begin(), content.end()))}});
    };
    std::string rows = "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n";
    for (int i = 0; i < 12; ++i) rows += fmt::format("{},400,60,0.025,0.62\n", 0.2 * i);
    const std::string about = R"({"format": 1, "name": "tiny", "deployment": )" + deployment + "}";
    return send(
        "POST", "/api/run",
        Json::object(
            {{"command", "replay-run"},
             {"model", "Llama-3.1-8B"},
             {"device", "h100_sxm"},
             {"max_model_len", int64_t{8192}},
             {"run", Json::object({{"files", Json::array({file("run.json", about), file("requests.csv", rows)})}})}})
            .dump(0));
  };
  const TestAnswer fine = ask_run("{}");
  ASSERT_EQ(fine.status, 200) << fine.body;
  EXPECT_THAT(fine.body, HasSubstr("\"run\":\"tiny\""));
  EXPECT_THAT(fine.body, Not(HasSubstr("/foretoken-")));
  const TestAnswer reads = ask_run(R"({"stack": "/etc/passwd"})");
  EXPECT_EQ(reads.status, 422);
  EXPECT_THAT(error_of(reads), Not(HasSubstr("root:")));
  EXPECT_EQ(ask_run(R"({"step_times": "/etc/passwd"})").status, 422);
}

TEST_F(PageServiceTest, fields_carry_what_the_program_declares) {
  const Json facts = parse_json(send("GET", "/api/library").body, "facts");
  const JsonView serve = JsonView(facts, "facts").at("fields").at("serve");
  EXPECT_EQ(serve.at("num_prompts").at("most").integer(), 500'000);
  EXPECT_EQ(serve.at("tensor_parallel_size").at("usual").integer(), 1);
  EXPECT_EQ(serve.at("tensor_parallel_size").at("names").items().at(1).string(), "tp");
  EXPECT_FALSE(serve.at("engine").at("help").string().empty());
  for (const JsonView& device : JsonView(facts, "facts").at("devices").items()) {
    const std::string name = device.at("file").at("name").string();
    const size_t engines = device.at("engines").items().size();
    EXPECT_EQ(engines == 0, name == "p100" || name == "p4" || device.at("file").at("kind").string() == "cpu") << name;
  }
}

}  // namespace foretoken::page_service_test
