// What clients ask of an OpenAI-compatible server, read from their JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/endpoint/answer_schema.h"
#include "app/endpoint/tokens.h"
#include "base/json.h"

namespace foretoken {

enum class CompletionKind : uint8_t { chat, text, embedding, response };

struct CallableTool {
  std::string name;
  std::shared_ptr<const AnswerSchema> arguments;
};

struct CompletionRequest {
  CompletionKind kind = CompletionKind::chat;
  std::string model;  // empty = whichever there is
  std::vector<std::vector<TokenId>> prompts;
  int64_t samples = 1;  // answers to each
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stop;  // texts at which an answer ends
  int64_t min_tokens = 0;
  int32_t priority = 0;  // lower goes first
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;                // in the last chunk of a stream
  std::optional<int64_t> dimensions;         // of embeddings
  bool base64 = false;                       // embeddings as bytes
  std::shared_ptr<const AnswerSchema> form;  // of the answer; none = words
  std::vector<CallableTool> must_call;       // one of these; empty = the answer is text
  // As they were given: /v1/responses repeats them.
  Json tools = Json::array(), tool_choice = "auto", text_format = Json::object({{"type", "text"}});
};

inline constexpr int64_t most_choices = 1024;  // of one request
// Of one request, streamed or not: more would keep the answers of others waiting.
inline constexpr int64_t most_embedding_values = 1'000'000, most_answer_tokens = 3'000'000;
inline constexpr int64_t most_stop_searches = 4 * most_answer_tokens;  // tokens times stop strings
inline constexpr int64_t most_form_bytes = int64_t{256} << 10;  // of the shortest documents that one request asks for

// Fields that change nothing here (temperature, ...) are checked and ignored; those whose answer would lack what was
// asked for (logprobs, echo, schemas with keywords that are not simulated) are refused. InputError names the field.
CompletionRequest read_completion_request(CompletionKind kind, const std::string& body);

// Of POST /tokenize: `prompt` or `messages`.
std::vector<TokenId> read_tokenize_request(const std::string& body);
std::vector<TokenId> read_detokenize_request(const std::string& body);  // of POST /detokenize: `tokens`

}  // namespace foretoken
