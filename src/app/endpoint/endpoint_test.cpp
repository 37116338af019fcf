#include "app/endpoint/endpoint.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "serving/test_support.h"

namespace foretoken::endpoint_endpoint_test {

using testing::EndsWith;
using testing::HasSubstr;

Json parsed(const TestAnswer& answer) {
  return parse_json(answer.body, "answer");
}

// The documents of a stream of events, without the last, which says that it is over.
std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  EXPECT_THAT(body, EndsWith("data: [DONE]\n\n"));
  for (size_t at = 0; (at = body.find("data: {", at)) != std::string::npos; ++at) {
    events.push_back(parse_json(body.substr(at + 6, body.find("\n\n", at) - at - 6), "event"));
  }
  return events;
}

class EndpointTest : public testing::Test {
 protected:
  void start(EndpointSettings settings = {}) {
    const ReplicaConfig replica{.options = options_, .times = &times_, .front = front_};
    settings.config.replicas = {replica, replica};
    settings.model_name = "tiny";
    settings.time_scale = time_scale_;
    settings.embedding_dimensions = 4;
    endpoint_.emplace(settings);
    server_settings_.port = 0;
    server_.emplace(server_settings_, *endpoint_);
    endpoint_->answer_through(*server_);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~EndpointTest() override { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  TestAnswer post(std::string_view path, std::string_view body) { return ask(server_->port(), "POST", path, body); }
  TestAnswer get(std::string_view path) { return ask(server_->port(), "GET", path); }
  JsonView choice(const Json& answer) { return JsonView(answer, "answer").at("choices").items().front(); }
  int64_t cached(const Json& answer) {
    return JsonView(answer, "answer").at("usage").at("prompt_tokens_details").at("cached_tokens").integer();
  }

  LinearTimes times_{{}};
  SchedulerOptions options_{.max_model_len = 1000, .num_gpu_blocks = 500};
  HttpServerSettings server_settings_;
  FrontCosts front_;
  double time_scale_ = 1000;
  std::optional<Endpoint> endpoint_;
  std::optional<HttpServer> server_;
  std::thread thread_;
};

TEST_F(EndpointTest, streams_the_words_of_the_whole_answer_one_chunk_each) {
  start();
  const std::string prompt = R"({"prompt": "some text", "max_tokens": 20, "ignore_eos": true)";
  const Json whole = parsed(post("/v1/completions", prompt + "}"));
  const std::vector<Json> events = events_of(
      post("/v1/completions", prompt + R"(, "stream": true, "stream_options": {"include_usage": true}})").body);
  ASSERT_EQ(events.size(), 21U);
  std::string text;
  for (size_t i = 0; i < 20; ++i) {
    text += choice(events[i]).at("text").string();
    EXPECT_EQ(choice(events[i]).has("finish_reason"), i == 19);
  }
  EXPECT_EQ(text, choice(whole).at("text").string());
  EXPECT_EQ(choice(whole).at("finish_reason").string(), "length");
  const JsonView usage = JsonView(events[20], "event").at("usage");
  EXPECT_EQ(usage.at("prompt_tokens").integer(), 3);
  EXPECT_EQ(usage.at("completion_tokens").integer(), 20);
  EXPECT_EQ(usage.at("total_tokens").integer(), 23);
}

TEST_F(EndpointTest, a_chat_begins_with_its_role_and_several_answers_come_side_by_side) {
  start();
  const std::vector<Json> events = events_of(
      post(
          "/v1/chat/completions",
          R"({"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "n": 2, "stream": true, "max_tokens": 5,
               "ignore_eos": true})")
          .body);
  ASSERT_EQ(events.size(), 12U);
  std::string texts[2];
  for (const Json& event : events) {
    const auto index = static_cast<size_t>(choice(event).at("index").integer());
    const JsonView delta = choice(event).at("delta");
    EXPECT_EQ(delta.has("role"), delta.at("content").string().empty());
    texts[index] += delta.at("content").string();
  }
  EXPECT_EQ(texts[0].size(), 5 * token_bytes);
  EXPECT_EQ(texts[1].size(), 5 * token_bytes);
  EXPECT_NE(texts[0], texts[1]);
}

TEST_F(EndpointTest, the_schedule_of_an_answer_alone_is_that_of_the_simulation) {
  start();
  const Json answer = parsed(post("/v1/completions", R"({"prompt": "12345678", "max_tokens": 3, "ignore_eos": true})"));
  const JsonView schedule = choice(answer).at("foretoken");
  SimulationConfig config{.replicas = {{.options = {.max_model_len = 1000, .num_gpu_blocks = 500}, .times = &times_}}};
  const SimulatedRun run = simulated(config, {{.input_tokens = 2, .output_tokens = 3}});
  EXPECT_NEAR(schedule.at("ttft_s").number(), to_seconds(run.told.requests[0].ttft()).value(), 1e-9);
  EXPECT_NEAR(schedule.at("e2e_s").number(), to_seconds(run.told.requests[0].e2el()).value(), 1e-9);
}

TEST_F(EndpointTest, finds_prefixes_of_equal_prompts_and_of_its_own_answers_again) {
  start();
  const std::string question(200, 'q');
  const auto turn = [&](const std::string& more) {
    return R"({"max_tokens": 40, "ignore_eos": true, "messages": [{"role": "user", "content": ")" + question + "\"}" +
           more + "]}";
  };
  // Twice: one for each replica.
  const Json first = parsed(post("/v1/chat/completions", turn("")));
  post("/v1/chat/completions", turn(""));
  EXPECT_EQ(cached(first), 0);
  EXPECT_EQ(cached(parsed(post("/v1/chat/completions", turn("")))), 48) << "of 53 tokens, in whole blocks";
  const std::string said = choice(first).at("message").at("content").string();
  const Json next = parsed(post("/v1/chat/completions", turn(R"(, {"role": "assistant", "content": ")" + said +
                                                             R"("}, {"role": "user", "content": "go on"})")));
  EXPECT_EQ(cached(next), 80) << "of the 93 tokens of the turn before, less the last, in whole blocks";
  EXPECT_EQ(post("/reset_prefix_cache", "").status, 200);
  EXPECT_EQ(cached(parsed(post("/v1/chat/completions", turn("")))), 0);
}

TEST_F(EndpointTest, answers_end_by_themselves_with_the_mean_that_was_asked_for) {
  start({.mean_output_tokens = 20});
  double tokens = 0;
  int64_t stops = 0;
  constexpr int64_t answers = 400;
  std::vector<std::string> prompts;
  for (int64_t i = 0; i < answers; ++i) prompts.push_back(fmt::format("[{}]", i));
  const Json answer =
      parsed(post("/v1/completions", fmt::format(R"({{"prompt": [{}], "max_tokens": 500}})", fmt::join(prompts, ","))));
  for (const JsonView& one : JsonView(answer, "answer").at("choices").items()) {
    tokens += static_cast<double>(one.at("text").string().size() / token_bytes);
    stops += one.at("finish_reason").string() == "stop" ? 1 : 0;
  }
  EXPECT_EQ(stops, answers);
  EXPECT_NEAR(tokens / answers, 20, 4 * 20 / std::sqrt(double{answers}));
}

TEST_F(EndpointTest, refuses_in_the_form_of_openai_errors) {
  start();
  const auto status = [](const TestAnswer& answer) {
    const Json json = parsed(answer);
    const JsonView error = JsonView(json, "answer").at("error");
    EXPECT_FALSE(error.at("message").string().empty());
    EXPECT_EQ(error.at("code").integer(), answer.status);
    return answer.status;
  };
  EXPECT_EQ(status(post("/v1/completions", "{")), 400);
  EXPECT_EQ(status(post("/v1/completions", R"({"prompt": ""})")), 400);
  EXPECT_EQ(status(post("/v1/completions", R"({"model": "other", "prompt": "a"})")), 404);
  EXPECT_EQ(status(post("/v1/nothing", "{}")), 404);
  EXPECT_EQ(status(get("/v1/completions")), 405);
  const TestAnswer too_long = post("/v1/completions", R"({"prompt": ")" + std::string(4 * 1001, 'x') + "\"}");
  EXPECT_EQ(status(too_long), 400);
  EXPECT_THAT(too_long.body, HasSubstr("maximum context length is 1000 tokens"));
  EXPECT_EQ(endpoint_->totals().completed, 0);
}

TEST_F(EndpointTest, more_tokens_than_the_model_has_room_for_are_refused_in_the_words_of_vllm) {
  start();
  const auto asked = [&](std::string_view path, std::string_view prompt, std::string_view limit, int64_t tokens) {
    return post(path, fmt::format(R"({{{}, "{}": {}, "ignore_eos": true}})", prompt, limit, tokens));
  };
  constexpr std::string_view text = R"("prompt": [1, 2, 3, 4])";
  const TestAnswer refused = asked("/v1/completions", text, "max_tokens", 997);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("'max_tokens' or 'max_completion_tokens' is too large: 997. This model's maximum "
                                      "context length is 1000 tokens and your request has 4 input tokens (997 > 1000 - "
                                      "4)."));
  EXPECT_EQ(asked("/v1/completions", text, "max_tokens", 996).status, 200);
  constexpr std::string_view chat = R"("messages": [{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(asked("/v1/chat/completions", chat, "max_completion_tokens", 1000).status, 400);
  stop();
  EXPECT_EQ(endpoint_->totals().refused, 2);
}

TEST_F(EndpointTest, answers_that_would_keep_others_waiting_are_refused_also_as_streams) {
  options_ = {.max_model_len = 100'000, .num_gpu_blocks = 10'000};
  start();
  const auto asked = [&](std::string_view fields) {
    return post("/v1/completions", fmt::format(R"({{"prompt": "a", "ignore_eos": true, {}}})", fields));
  };
  for (const char* stream : {"true", "false"}) {
    const TestAnswer refused = asked(fmt::format(R"("max_tokens": 90000, "n": 34, "stream": {})", stream));
    EXPECT_EQ(refused.status, 400) << stream;
    EXPECT_THAT(refused.body, HasSubstr("3060000 tokens"));
  }
  std::vector<std::string> stops(64, R"("zzzz")");
  const std::string list = fmt::format("[{}]", fmt::join(stops, ","));
  EXPECT_THAT(asked(fmt::format(R"("max_tokens": 90000, "n": 3, "stop": {})", list)).body,
              HasSubstr("64 stop strings"));
  EXPECT_EQ(asked(fmt::format(R"("max_tokens": 100, "n": 3, "stop": {})", list)).status, 200);
  stop();
  EXPECT_EQ(endpoint_->totals().refused, 3);
}

TEST_F(EndpointTest, several_answers_to_a_prompt_find_it_in_the_cache_as_one_does) {
  start();
  // 50 tokens: two beyond the last whole block, so that the answer begins within one.
  const std::string prompt = R"({"prompt": ")" + std::string(200, 'q') + R"(", "max_tokens": 30, "ignore_eos": true)";
  const Json first = parsed(post("/v1/completions", prompt + R"(, "n": 2})"));
  const std::string said = choice(first).at("text").string();
  post("/v1/completions", prompt + R"(, "n": 2})");  // the other replica
  const Json next = parsed(post("/v1/completions", R"({"prompt": ")" + std::string(200, 'q') + said + R"("})"));
  EXPECT_EQ(cached(next), 64) << "of 80 tokens, of which the last was never computed, in whole blocks";
}

TEST_F(EndpointTest, the_prompts_of_one_body_enter_the_same_first_step) {
  front_ = {.request = Seconds(0.02)};  // so long that single ones would come one by one
  start();
  const Json answer = parsed(
      post("/v1/completions", R"({"prompt": [[1, 2], [3, 4], [5, 6]], "n": 2, "max_tokens": 3, "ignore_eos": true})"));
  const std::vector<JsonView> choices = JsonView(answer, "answer").at("choices").items();
  ASSERT_EQ(choices.size(), 6U);
  for (const JsonView& one : choices) {
    const JsonView own = one.at("foretoken"), first = choices.front().at("foretoken");
    EXPECT_EQ(own.at("replica").integer(), first.at("replica").integer());
    EXPECT_EQ(own.at("ttft_s").number(), first.at("ttft_s").number());
  }
}

TEST_F(EndpointTest, fails_requests_at_the_rate_that_was_asked_for) {
  start({.failure_rate = 1});
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a"})").status, 500);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(EndpointTest, says_what_it_is_and_how_it_is) {
  start({.version = "1.2.3"});
  EXPECT_THAT(get("/v1/models").body, HasSubstr(R"("id":"tiny")"));
  EXPECT_THAT(get("/version").body, HasSubstr("1.2.3"));
  EXPECT_THAT(get("/load").body, HasSubstr(R"("server_load":0)"));
  for (const char* path : {"/health", "/health/ready", "/ping"}) EXPECT_EQ(get(path).status, 200);
  EXPECT_THAT(post("/tokenize", R"({"prompt": "12345"})").body, HasSubstr(R"("count":2)"));
}

TEST_F(EndpointTest, metrics_count_what_was_served_under_the_names_of_vllm) {
  start();
  post("/v1/completions", R"({"prompt": "12345678", "max_tokens": 5, "ignore_eos": true})");
  post("/v1/completions", R"({"prompt": "12345678", "max_tokens": 7, "ignore_eos": true})");
  const std::string text = get("/metrics").body;
  const auto labelled = [](int engine) { return fmt::format(R"(engine="{}",model_name="tiny")", engine); };
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:generation_tokens_total counter\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{" + labelled(0) + "} 5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{" + labelled(1) + "} 7\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_success_total{" + labelled(0) + ",finished_reason=\"length\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{" + labelled(0) + ",le=\"+Inf\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{" + labelled(0) + ",le=\"0.001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{" + labelled(0) + "} 0\n"));
}

TEST_F(EndpointTest, gives_embeddings_as_numbers_or_bytes) {
  start();
  const Json numbers = parsed(post("/v1/embeddings", R"({"input": ["a", "b"], "dimensions": 3})"));
  const std::vector<JsonView> data = JsonView(numbers, "answer").at("data").items();
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[1].at("embedding").items().size(), 3U);
  const Json bytes = parsed(post("/v1/embeddings", R"({"input": "a", "encoding_format": "base64"})"));
  EXPECT_EQ(JsonView(bytes, "answer").at("data").items()[0].at("embedding").string().size(), 24U) << "of 4 x 4 bytes";
}

TEST_F(EndpointTest, tokens_reach_the_client_when_the_sending_process_has_come_to_them) {
  front_ = {.piece = Seconds(20)};  // 20 ms of real time each, far longer than a step
  start();
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Json> events = events_of(
      post("/v1/completions", R"({"prompt": "a", "max_tokens": 6, "ignore_eos": true, "stream": true})").body);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(events.size(), 6U);
  EXPECT_GE(passed.count(), 6 * 0.020);
  const double schedule = choice(events.back()).at("foretoken").at("e2e_s").number();
  EXPECT_GE(passed.count(), schedule / time_scale_) << "as the answer itself says";
  {  // A client that leaves while its tokens are on the way.
    TestClient client(server_->port());
    client.send_request("POST", "/v1/completions",
                        R"({"prompt": "a", "max_tokens": 50, "ignore_eos": true, "stream": true})");
    client.read_until("data: ");
  }
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "b", "max_tokens": 2, "ignore_eos": true})").status, 200);
  stop();
  EXPECT_EQ(endpoint_->totals().cancelled, 1);
}

TEST_F(EndpointTest, a_client_that_leaves_frees_its_engine) {
  time_scale_ = 1;  // so that it leaves before its answer ends, however busy the machine is
  start();
  {
    TestClient client(server_->port());
    client.send_request("POST", "/v1/completions",
                        R"({"prompt": "a", "max_tokens": 900, "ignore_eos": true, "stream": true})");
    client.read_until("data: ");
  }
  while (get("/metrics").body.find("finished_reason=\"abort\"} 1\n") == std::string::npos) std::this_thread::yield();
  EXPECT_THAT(get("/metrics").body, HasSubstr(R"(vllm:num_requests_running{engine="0",model_name="tiny"} 0)"));
  stop();
  EXPECT_EQ(endpoint_->totals().cancelled, 1);
}

TEST_F(EndpointTest, streams_that_are_under_way_end_before_the_server_does) {
  start();
  TestClient client(server_->port());
  client.send_request("POST", "/v1/completions",
                      R"({"prompt": "a", "max_tokens": 300, "ignore_eos": true, "stream": true})");
  std::string bytes = client.read_until("data: ");
  stop();
  bytes += client.read_all();
  EXPECT_EQ(events_of(parsed_answer(bytes).body).size(), 300U);
}

TEST_F(EndpointTest, each_request_ends_as_answered_refused_or_cancelled) {
  start();
  EXPECT_EQ(post("/v1/completions", R"({"prompt": "a", "max_tokens": 2})").status, 200);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_EQ(get("/v1/models/ti%6Ey").status, 200);
  EXPECT_EQ(post("/tokenize", R"({"prompt": "a"})").status, 200);
  TestClient malformed(server_->port());
  malformed.send_bytes("NOT HTTP\r\n\r\n");
  EXPECT_THAT(malformed.read_all(), HasSubstr(" 400 "));
  stop();
  const EndpointTotals& totals = endpoint_->totals();
  EXPECT_EQ(totals.requests, 6);
  EXPECT_EQ(totals.completed, 4);
  EXPECT_EQ(totals.refused, 2);
  EXPECT_EQ(totals.cancelled, 0);
}

TEST_F(EndpointTest, a_stream_that_the_grace_cuts_off_and_a_connection_too_many_are_counted) {
  time_scale_ = 1;
  server_settings_ = {.max_connections = 1, .grace = std::chrono::milliseconds(20)};
  start();
  TestClient client(server_->port());
  client.send_request("POST", "/v1/completions",
                      R"({"prompt": "a", "max_tokens": 900, "ignore_eos": true, "stream": true})");
  client.read_until("data: ");
  EXPECT_EQ(get("/health").status, 429);
  stop();
  const EndpointTotals& totals = endpoint_->totals();
  EXPECT_EQ(totals.requests, 2);
  EXPECT_EQ(totals.refused, 1);
  EXPECT_EQ(totals.cancelled, 1);
}

TEST_F(EndpointTest, an_answer_ends_before_a_stop_text_whether_it_is_streamed_or_not) {
  start();
  const std::string prompt = R"({"prompt": "some text", "max_tokens": 20, "ignore_eos": true)";
  const Json whole = parsed(post("/v1/completions", prompt + "}"));
  const std::string text = choice(whole).at("text").string();
  const std::string stop = text.substr(22, 5);  // across a space, in the sixth and seventh word
  const size_t at = text.find(stop);
  const Json cut = parsed(post("/v1/completions", prompt + R"(, "stop": [")" + stop + R"("]})"));
  EXPECT_EQ(choice(cut).at("text").string(), text.substr(0, at));
  EXPECT_EQ(choice(cut).at("finish_reason").string(), "stop");
  EXPECT_LE(JsonView(cut, "answer").at("usage").at("completion_tokens").integer(), 7);
  std::string streamed;
  for (const Json& event :
       events_of(post("/v1/completions", prompt + R"(, "stream": true, "stop": ")" + stop + R"("})").body)) {
    streamed += choice(event).at("text").string();
  }
  EXPECT_EQ(streamed, text.substr(0, at));
}

TEST_F(EndpointTest, a_model_is_looked_up_by_each_of_its_names) {
  EndpointSettings settings;
  settings.other_names = {"vendor/tiny"};
  start(settings);
  EXPECT_EQ(get("/v1/models/tiny").status, 200);
  EXPECT_THAT(get("/v1/models/vendor/tiny").body, HasSubstr(R"("id":"vendor/tiny")"));
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_EQ(post("/v1/completions", R"({"model": "vendor/tiny", "prompt": "a"})").status, 200);
  EXPECT_EQ(post("/v1/completions", R"({"model": "other", "prompt": "a"})").status, 404);
}

TEST_F(EndpointTest, tokens_become_text_of_as_many_tokens) {
  start();
  const Json text = parsed(post("/detokenize", R"({"tokens": [5, 6, 7]})"));
  const Json tokens =
      parsed(post("/tokenize", R"({"prompt": ")" + JsonView(text, "text").at("prompt").string() + R"("})"));
  EXPECT_EQ(JsonView(tokens, "tokens").at("count").integer(), 3);
  EXPECT_EQ(post("/detokenize", R"({"tokens": "a"})").status, 400);
}

TEST_F(EndpointTest, browsers_are_told_that_any_page_may_ask) {
  start();
  TestClient client(server_->port());
  client.send_bytes(
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\nOrigin: http://page\r\nAccess-Control-Request-Method: "
      "POST\r\n"
      "Access-Control-Request-Headers: content-type\r\nConnection: close\r\n\r\n");
  const TestAnswer answer = parsed_answer(client.read_all());
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Access-Control-Allow-Methods: GET, HEAD, OPTIONS, POST"));
  EXPECT_THAT(answer.head, HasSubstr("Access-Control-Allow-Headers: content-type"));
}

TEST_F(EndpointTest, responses_are_one_document_or_events_that_end_with_it) {
  start();
  const std::string question = R"({"input": "some text", "max_output_tokens": 5, "ignore_eos": true)";
  const Json whole = parsed(post("/v1/responses", question + "}"));
  const JsonView view(whole, "answer");
  EXPECT_EQ(view.at("object").string(), "response");
  EXPECT_EQ(view.at("status").string(), "incomplete");
  EXPECT_EQ(view.at("incomplete_details").at("reason").string(), "max_output_tokens");
  EXPECT_EQ(view.at("usage").at("output_tokens").integer(), 5);
  const JsonView message = view.at("output").items().front();
  EXPECT_EQ(message.at("role").string(), "assistant");
  const std::string text = message.at("content").items().front().at("text").string();

  const TestAnswer stream = post("/v1/responses", question + R"(, "stream": true})");
  EXPECT_THAT(stream.body, testing::StartsWith("event: response.created\ndata: "));
  std::vector<std::string> kinds;
  std::string deltas;
  int64_t number = 0;
  for (size_t at = 0; (at = stream.body.find("data: {", at)) != std::string::npos; ++at) {
    const Json event = parse_json(stream.body.substr(at + 6, stream.body.find("\n\n", at) - at - 6), "event");
    const JsonView of(event, "event");
    EXPECT_EQ(of.at("sequence_number").integer(), number++);
    kinds.push_back(of.at("type").string());
    if (kinds.back() == "response.output_text.delta") deltas += of.at("delta").string();
    if (kinds.back() == "response.output_text.done") {
      EXPECT_EQ(of.at("text").string(), text);
    }
    if (kinds.back() == "response.incomplete") {
      EXPECT_EQ(of.at("response").at("usage").at("output_tokens").integer(), 5);
      EXPECT_EQ(of.at("response").at("output").items().front().at("content").items().front().at("text").string(), text);
    }
  }
  EXPECT_EQ(deltas, text);
  EXPECT_EQ(kinds,
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.delta", "response.output_text.delta",
                "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done", "response.incomplete"}));
  EXPECT_EQ(post("/v1/responses", R"({"input": [{"role": "nobody", "content": "x"}]})").status, 400);
}

constexpr const char* weather_tool =
    R"({"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7}}, "required": ["city", "days"]}})";

std::string chat_with(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "weather?"}])" + fields + "}";
}

TEST_F(EndpointTest, a_required_tool_is_called_with_arguments_that_fit_whether_streamed_or_not) {
  start();
  const std::string tools =
      fmt::format(R"(, "tools": [{{"type": "function", "function": {}}}], "tool_choice": )", weather_tool);
  const std::string required = tools + R"("required", "max_tokens": 40)";
  const Json whole = parsed(post("/v1/chat/completions", chat_with(required)));
  EXPECT_EQ(choice(whole).at("finish_reason").string(), "tool_calls");
  EXPECT_FALSE(choice(whole).at("message").has("content"));
  const JsonView call = choice(whole).at("message").at("tool_calls").items().front();
  EXPECT_EQ(call.at("type").string(), "function");
  EXPECT_EQ(call.at("function").at("name").string(), "weather");
  const std::string text = call.at("function").at("arguments").string();
  const Json arguments = parse_json(text, "arguments");
  EXPECT_NE(JsonView(arguments, "arguments").at("city").string(), "");
  JsonView(arguments, "arguments").at("days").integer({.least = 1, .most = 7});
  const int64_t used = JsonView(whole, "answer").at("usage").at("completion_tokens").integer();
  EXPECT_EQ(static_cast<int64_t>(text.size()), used * 4);
  EXPECT_LE(used, 40);

  const std::vector<Json> events =
      events_of(post("/v1/chat/completions", chat_with(required + R"(, "stream": true)")).body);
  std::string streamed, name;
  for (const Json& event : events) {
    const JsonView part = choice(event).at("delta").at("tool_calls").items().front();
    EXPECT_EQ(part.at("index").integer(), 0);
    streamed += part.at("function").at("arguments").string();
    if (part.at("function").has("name")) name += part.at("function").at("name").string();
  }
  EXPECT_EQ(name, "weather");
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(choice(events.back()).at("finish_reason").string(), "tool_calls");

  const Json named = parsed(
      post("/v1/chat/completions", chat_with(tools + R"({"type": "function", "function": {"name": "weather"}})")));
  EXPECT_EQ(choice(named).at("finish_reason").string(), "tool_calls");
  const Json cut = parsed(post("/v1/chat/completions", chat_with(tools + R"("required", "max_tokens": 2)")));
  EXPECT_EQ(choice(cut).at("finish_reason").string(), "length") << "an engine ends there too";
  EXPECT_EQ(JsonView(cut, "answer").at("usage").at("completion_tokens").integer(), 2);
  const Json free = parsed(post("/v1/chat/completions", chat_with(tools + R"("auto")")));
  EXPECT_TRUE(choice(free).at("message").has("content"));
}

TEST_F(EndpointTest, answers_are_json_that_follows_the_format_asked_for) {
  start();
  const std::string format =
      R"(, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object",
          "properties": {"ok": {"type": "boolean"}, "why \"\u00e4\"": {"enum": ["a\\b", "\"q\""]}},
          "required": ["ok", "why \"\u00e4\""]}}}, "n": 3)";
  const auto texts = [&](const std::string& fields) {
    std::vector<std::string> contents(3);
    for (const Json& event :
         events_of(post("/v1/chat/completions", chat_with(format + fields + R"(, "stream": true)")).body)) {
      contents[static_cast<size_t>(choice(event).at("index").integer())] +=
          choice(event).at("delta").at("content").string();
    }
    return contents;
  };
  const Json whole = parsed(post("/v1/chat/completions", chat_with(format)));
  const std::vector<std::string> streamed = texts("");
  for (const JsonView& one : JsonView(whole, "answer").at("choices").items()) {
    EXPECT_EQ(one.at("finish_reason").string(), "stop");
    const std::string text = one.at("message").at("content").string();
    EXPECT_EQ(text, streamed[static_cast<size_t>(one.at("index").integer())]);
    const Json value = parse_json(text, "content");
    JsonView(value, "content").at("ok").boolean();
    EXPECT_EQ(value.members().size(), 2U);
  }
  // As long as was asked for: spaces before the last bracket.
  for (const std::string& text : texts(R"(, "max_tokens": 50, "ignore_eos": true)")) {
    EXPECT_EQ(text.size(), 200U);
    EXPECT_EQ(parse_json(text, "content").members().size(), 2U);
  }
  const Json object =
      parsed(post("/v1/chat/completions", chat_with(R"(, "response_format": {"type": "json_object"})")));
  EXPECT_EQ(parse_json(choice(object).at("message").at("content").string(), "content").kind(), Json::Kind::object);
}

TEST_F(EndpointTest, responses_call_tools_and_follow_formats) {
  start();
  const std::string tool = std::string(R"({"type": "function", )") + (weather_tool + 1);
  const std::string question = R"({"input": "weather?", "tools": [)" + tool + R"(], "tool_choice": "required")";
  const Json whole = parsed(post("/v1/responses", question + "}"));
  const JsonView item = JsonView(whole, "answer").at("output").items().front();
  EXPECT_EQ(item.at("type").string(), "function_call");
  EXPECT_EQ(item.at("name").string(), "weather");
  EXPECT_EQ(item.at("status").string(), "completed");
  EXPECT_EQ(JsonView(whole, "answer").at("tools").items().size(), 1U);
  EXPECT_EQ(JsonView(whole, "answer").at("tool_choice").string(), "required");
  const std::string text = item.at("arguments").string();
  parse_json(text, "arguments");
  const std::string events = post("/v1/responses", question + R"(, "stream": true})").body;
  EXPECT_THAT(events, HasSubstr("event: response.function_call_arguments.delta\n"));
  EXPECT_THAT(events, HasSubstr(R"("arguments":)" + Json(text).dump(0)));
  EXPECT_THAT(events, HasSubstr("event: response.completed\n"));
  const Json formed = parsed(post("/v1/responses", R"({"input": "x", "text": {"format": {"type": "json_schema",
      "name": "x", "schema": {"type": "array", "items": {"const": 7}, "minItems": 2, "maxItems": 2}}}})"));
  const JsonView message = JsonView(formed, "answer").at("output").items().front();
  EXPECT_EQ(parse_json(message.at("content").items().front().at("text").string(), "text").dump(0), "[7,7]");
  EXPECT_EQ(JsonView(formed, "answer").at("text").at("format").at("name").string(), "x");
}

TEST_F(EndpointTest, other_hosts_and_origins_are_refused_where_a_list_is_given) {
  start({.allowed_sites = {.hosts = {"localhost"}, .origins = {"http://app.example"}}});
  const auto with = [&](std::string_view headers) {
    TestClient client(server_->port());
    client.send_bytes(fmt::format("GET /v1/models HTTP/1.1\r\n{}Connection: close\r\n\r\n", headers));
    return client.read_all();
  };
  EXPECT_THAT(with("Host: localhost:8000\r\n"), HasSubstr(" 200 "));
  EXPECT_THAT(with("Host: LOCALHOST\r\nOrigin: http://App.example\r\n"), HasSubstr(" 200 "));
  EXPECT_THAT(with("Host: rebound.example\r\n"), HasSubstr(" 403 "));
  EXPECT_THAT(with("Host: localhost\r\nOrigin: http://other.example\r\n"), HasSubstr(" 403 "));
}

}  // namespace foretoken::endpoint_endpoint_test
