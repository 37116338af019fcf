#include "app/observe/completion_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/observe/prompt_text.h"
#include "base/error.h"

namespace foretoken::completion_stream_test {

constexpr std::string_view chat_events =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\" the\"}}]}\n\n"
    ": a comment\n\n"
    "data:{\"choices\": [{\"delta\": {\"reasoning_content\": \" and\"}}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,"
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
    "data: [DONE]\n\n";

TEST(CompletionStream, events_with_text_are_counted_however_they_are_cut) {
  for (size_t size = 1; size < 200; ++size) {
    CompletionStream stream;
    int64_t events = 0;
    for (size_t at = 0; at < chat_events.size(); at += size) events += stream.take(chat_events.substr(at, size), true);
    EXPECT_EQ(events, 2) << size;
    EXPECT_EQ(stream.text_events(), 2);
    EXPECT_EQ(stream.usage().prompt_tokens, 7);
    EXPECT_EQ(stream.usage().completion_tokens, 2);
    EXPECT_EQ(stream.usage().cached_tokens, 4);
    EXPECT_TRUE(stream.is_done());
    EXPECT_EQ(stream.error(), "");
  }
}

TEST(CompletionStream, an_error_inside_a_stream_is_told) {
  CompletionStream stream;
  stream.take("data: {\"error\":{\"message\":\"the engine died\",\"code\":500}}\n\n", true);
  EXPECT_EQ(stream.error(), "the engine died");
  EXPECT_EQ(server_error_text("{\"object\":\"error\",\"message\":\"too long\"}"), "too long");
  EXPECT_EQ(server_error_text("busy"), "busy");
  EXPECT_EQ(server_error_text("<html>"), "an HTML page");
  EXPECT_EQ(server_error_text("\n<!DOCTYPE html><head><Title>404 Not Found</Title></head><p>no"),
            "an HTML page titled \"404 Not Found\"");
  EXPECT_EQ(server_error_text("<html></title><title>"), "an HTML page");
  EXPECT_THROW(stream.take("data: {\"usage\" \n", true), InputError);
}

TEST(PromptText, prompts_share_text_as_they_share_blocks) {
  const Request first{.id = 1, .input_tokens = 40, .prefix_block_tokens = 16, .prefix_blocks = {7, 8}};
  Request second = first;
  second.id = 2;
  const std::string text = prompt_text(first, 3);
  EXPECT_EQ(text.size(), 40U * 4);
  EXPECT_EQ(prompt_text(first, 3), text);
  EXPECT_EQ(prompt_text(second, 3).substr(0, 128), text.substr(0, 128));
  EXPECT_NE(prompt_text(second, 3), text);
  second.prefix_blocks[1] = 9;
  EXPECT_EQ(prompt_text(second, 3).substr(0, 64), text.substr(0, 64));
  EXPECT_NE(prompt_text(second, 3).substr(0, 128), text.substr(0, 128));
  EXPECT_NE(prompt_text(first, 4), text);
}

}  // namespace foretoken::completion_stream_test
