#include "app/endpoint/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::completion_request_test {

CompletionRequest chat(const std::string& fields) {
  return read_completion_request(CompletionKind::chat,
                                 R"({"messages": [{"role": "user", "content": "12345678"}])" + fields + "}");
}

std::string complaint(CompletionKind kind, const std::string& body) {
  try {
    read_completion_request(kind, body);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CompletionRequest, of_a_chat_has_a_token_for_each_role_and_end_and_one_for_the_answer) {
  const CompletionRequest request = chat("");
  ASSERT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(request.prompts[0].size(), 5U);
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.stream);
}

TEST(CompletionRequest, of_the_next_turn_begins_with_the_tokens_of_the_last_and_its_answer) {
  const std::string said = answer_text(1, 0, 6);
  const auto turn = [](const std::string& more) {
    return read_completion_request(CompletionKind::chat,
                                   R"({"messages": [{"role": "user", "content": "Hello"})" + more + "]}")
        .prompts[0];
  };
  std::vector<TokenId> first = turn("");
  add_tokens(said, first);
  const std::vector<TokenId> second =
      turn(R"(, {"role": "assistant", "content": ")" + said + R"("}, {"role": "user", "content": "More"})");
  ASSERT_GT(second.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin()));
}

TEST(CompletionRequest, takes_parts_of_text_for_the_text) {
  const std::string parts =
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "1234"}, {"type": "text", "text": "5678"}]}]})";
  EXPECT_EQ(read_completion_request(CompletionKind::chat, parts).prompts, chat("").prompts);
}

TEST(CompletionRequest, reads_the_fields_that_change_the_answer) {
  const CompletionRequest request = chat(
      R"(, "max_tokens": 5, "max_completion_tokens": 7, "n": 3, "stream": true, "ignore_eos": true, "min_tokens": 2,
         "stream_options": {"include_usage": true}, "temperature": 0.5, "stop": ["x"], "tools": [])");
  EXPECT_EQ(request.max_tokens, 7) << "the newer name wins";
  EXPECT_EQ(request.samples, 3);
  EXPECT_EQ(request.min_tokens, 2);
  EXPECT_TRUE(request.stream && request.ignore_eos && request.include_usage);
}

TEST(CompletionRequest, takes_one_and_zero_for_true_and_false_and_nothing_else) {
  const CompletionRequest request = chat(R"(, "stream": 1, "ignore_eos": 0, "stream_options": {"include_usage": 1})");
  EXPECT_TRUE(request.stream && request.include_usage);
  EXPECT_FALSE(request.ignore_eos);
  EXPECT_FALSE(chat(R"(, "stream": null, "ignore_eos": 1)").stream);
  for (const char* wrong : {R"("false")", "2", "0.5", "{}", "[]"}) {
    for (const char* field :
         {R"("stream": )", R"("ignore_eos": )", R"("stream": true, "stream_options": {"include_usage": )"}) {
      const std::string close = std::string_view(field).find("usage") == std::string_view::npos ? "}" : "}}";
      EXPECT_NE(complaint(CompletionKind::text, std::string(R"({"prompt": "a", )") + field + wrong + close), "")
          << field << wrong;
    }
  }
}

TEST(CompletionRequest, takes_prompts_as_texts_and_as_token_ids) {
  const auto prompts = [](const std::string& prompt) {
    return read_completion_request(CompletionKind::text, R"({"prompt": )" + prompt + "}").prompts;
  };
  EXPECT_EQ(prompts(R"("12345678")")[0].size(), 2U);
  EXPECT_EQ(prompts(R"(["1234", "12345"])")[1].size(), 2U);
  EXPECT_EQ(prompts("[5, 6, 7]"), (std::vector<std::vector<TokenId>>{{5, 6, 7}}));
  EXPECT_EQ(prompts("[[5, 6], [7]]"), (std::vector<std::vector<TokenId>>{{5, 6}, {7}}));
}

TEST(CompletionRequest, complains_about_what_it_cannot_answer_and_names_the_field) {
  using testing::HasSubstr;
  EXPECT_THAT(complaint(CompletionKind::chat, "{"), HasSubstr("request body"));
  EXPECT_THAT(complaint(CompletionKind::chat, "[]"), HasSubstr("an object"));
  EXPECT_THAT(complaint(CompletionKind::chat, "{}"), HasSubstr("messages"));
  EXPECT_THAT(complaint(CompletionKind::chat, R"({"messages": []})"), HasSubstr("at least one message"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "logprobs": 2})"), HasSubstr("logprobs"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "max_tokens": 0})"), HasSubstr("max_tokens"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "n": -1})"), HasSubstr("n"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": ["a", "b"], "n": 1000})"), HasSubstr("at most 1024"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": [-1]})"), HasSubstr("prompt"));
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "stream_options": {}})"), HasSubstr("stream"));
  EXPECT_THAT(
      complaint(CompletionKind::chat, R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})"),
      HasSubstr("not simulated"));
  EXPECT_EQ(complaint(CompletionKind::text, R"({"prompt": "a", "logprobs": null, "echo": false})"), "");
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "min_tokens": 17})"), HasSubstr("min_tokens"))
      << "max_tokens is 16 there";
  EXPECT_THAT(complaint(CompletionKind::text, R"({"prompt": "a", "min_tokens": 3, "max_tokens": 2})"), HasSubstr("2"));
  EXPECT_EQ(complaint(CompletionKind::text, R"({"prompt": "a", "min_tokens": 2, "max_tokens": 2})"), "");
}

TEST(CompletionRequest, refuses_values_that_an_engine_refuses_and_forms_that_made_up_text_has_not) {
  using testing::HasSubstr;
  const auto said = [](const std::string& fields) {
    return complaint(CompletionKind::chat, R"({"messages": [{"role": "user", "content": "a"}])" + fields + "}");
  };
  EXPECT_THAT(complaint(CompletionKind::chat, R"({"messages": [{"role": "robot", "content": "a"}]})"),
              HasSubstr("one of system"));
  EXPECT_THAT(said(R"(, "temperature": "hot")"), HasSubstr("temperature"));
  EXPECT_THAT(said(R"(, "temperature": 3)"), HasSubstr("temperature"));
  EXPECT_THAT(said(R"(, "top_p": -1)"), HasSubstr("top_p"));
  EXPECT_THAT(said(R"(, "response_format": {"type": "grammar"})"), HasSubstr("json_schema"));
  EXPECT_THAT(said(R"(, "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})"),
              HasSubstr("response_format.json_schema.schema.not"));
  EXPECT_THAT(said(R"(, "tools": [], "tool_choice": "required")"), HasSubstr("tool_choice"));
  EXPECT_THAT(said(R"(, "tools": [], "tool_choice": {"type": "function"})"), HasSubstr("function"));
  EXPECT_THAT(said(R"(, "tools": [{"type": "function", "function": {"name": "f"}}],
                      "tool_choice": {"type": "function", "function": {"name": "g"}})"),
              HasSubstr("lists"));
  EXPECT_THAT(said(R"(, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}],
                      "tool_choice": "required")"),
              HasSubstr("object"));
  EXPECT_THAT(said(R"(, "tools": [{"type": "web_search"}])"), HasSubstr("not simulated"));
  EXPECT_THAT(said(R"(, "guided_regex": "a*")"), HasSubstr("guided_regex"));
  EXPECT_THAT(said(R"(, "n": 1000, "guided_json": {"type": "string", "minLength": 1000})"), HasSubstr("fewer"));
  EXPECT_THAT(said(R"(, "n": 2, "best_of": 3)"), HasSubstr("best_of"));
  EXPECT_THAT(said(R"(, "stop": 5)"), HasSubstr("stop"));
  EXPECT_THAT(said(R"(, "stop": "")"), HasSubstr("stop"));
  EXPECT_EQ(said(R"(, "temperature": 0.7, "top_p": 1, "tool_choice": "auto", "n": 2, "best_of": 2,
                    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}],
                    "response_format": {"type": "text"}, "stop": null, "seed": 1)"),
            "");
  EXPECT_THAT(chat(R"(, "stop": ["a", "b"])").stop, testing::ElementsAre("a", "b"));
}

TEST(CompletionRequest, tools_and_calls_are_part_of_the_prompt) {
  const std::string tools = R"(, "tools": [{"type": "function", "function": {"name": "weather"}}])";
  EXPECT_GT(chat(tools).prompts.front().size(), chat("").prompts.front().size());
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "required")").must_call.front().name, "weather");
  EXPECT_TRUE(chat(tools).must_call.empty());
  EXPECT_NE(chat(R"(, "response_format": {"type": "json_object"})").form, nullptr);
  const CompletionRequest next = read_completion_request(CompletionKind::response, R"({"input": [
      {"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "a", "output": "sunny"}]})");
  EXPECT_EQ(next.prompts.front().size(), 3 + 3 + 4 + 1U);
}

TEST(CompletionRequest, responses_take_a_text_or_messages) {
  const auto read = [](const std::string& body) { return read_completion_request(CompletionKind::response, body); };
  const CompletionRequest text = read(R"({"input": "hello", "max_output_tokens": 7, "stream": true})");
  EXPECT_EQ(text.max_tokens, 7);
  EXPECT_TRUE(text.stream);
  const CompletionRequest messages = read(R"({"input": [{"type": "message", "role": "user", "content":
      [{"type": "input_text", "text": "hello"}]}]})");
  EXPECT_EQ(messages.prompts, text.prompts);
  const CompletionRequest chat =
      read_completion_request(CompletionKind::chat, R"({"messages": [{"role": "user", "content": "hello"}]})");
  EXPECT_EQ(chat.prompts, text.prompts);
  EXPECT_GT(read(R"({"input": "hello", "instructions": "be brief"})").prompts.front().size(),
            text.prompts.front().size());
  for (const char* wrong :
       {R"({})", R"({"input": 5})", R"({"input": []})", R"({"input": [{"role": "king", "content": "x"}]})",
        R"({"input": [{"type": "reasoning", "summary": []}]})", R"({"input": "x", "max_tokens": 5})",
        R"({"input": "x", "n": 2})", R"({"input": "x", "response_format": {"type": "text"}})",
        R"({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]})",
        R"({"input": "x", "instructions": 3})", R"({"input": "x", "max_output_tokens": 0})",
        R"({"input": "x", "previous_response_id": "resp_1"})", R"({"input": "x", "background": true})",
        R"({"input": "x", "temperature": "hot"})", R"({"input": "x", "tool_choice": "required"})",
        R"({"input": "x", "text": {"format": {"type": "json_schema"}}})"}) {
    EXPECT_THROW(read(wrong), InputError) << wrong;
  }
}

}  // namespace foretoken::completion_request_test
