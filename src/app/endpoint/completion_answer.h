// Answers of an OpenAI-compatible server: whole documents, chunks of a stream, and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/endpoint/completion_request.h"
#include "app/http/message.h"
#include "base/json.h"
#include "serving/online/engine_metrics.h"
#include "serving/requests/request.h"

namespace foretoken {

// What all chunks of an answer share.
struct AnswerHead {
  CompletionKind kind = CompletionKind::chat;
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::optional<int64_t> max_output_tokens;  // that were asked for
  Json tools = Json::array(), tool_choice = "auto", text_format;
};

struct TokenUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};
Json usage_json(const TokenUsage& usage);

// One of the answers to a request.
struct AnsweredChoice {
  int64_t index = 0;
  std::string text;             // of a call: its arguments
  std::string tool;             // that it calls; empty = it is text
  bool completes_call = false;  // the arguments are whole
  FinishReason reason = FinishReason::stop;
  RequestRecord record;  // what was simulated: each choice says so in its member "foretoken"
};

Json timing_json(const RequestRecord& record);
std::string_view finish_text(const AnsweredChoice& choice);
std::string call_id(const AnswerHead& head, const AnsweredChoice& choice);
// Between the quotes of a JSON text. Answers are ASCII without control characters.
std::string escaped(std::string_view text);

Json completion_json(const AnswerHead& head, std::span<const AnsweredChoice> choices, const TokenUsage& usage);
// `embeddings`: by prompt.
std::string embedding_text(const AnswerHead& head, const std::vector<std::vector<float>>& embeddings, bool base64,
                           const TokenUsage& usage);

HttpResponse json_answer(const Json& json, int status = 200);
// In the form of OpenAI's errors.
HttpResponse error_answer(int status, const std::string& message);

}  // namespace foretoken
