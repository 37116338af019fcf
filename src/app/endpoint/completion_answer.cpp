#include "app/endpoint/completion_answer.h"

#include <bit>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"

namespace foretoken {
namespace {

std::string json_string(std::string_view text) {
  return Json(text).dump(0);
}

std::string_view error_type(int status) {
  if (status == 404) return "NotFoundError";
  if (status == 429) return "RateLimitError";
  return status < 500 ? "BadRequestError" : "InternalServerError";
}

// Little-endian 32-bit floats, as OpenAI sends them.
std::string base64_floats(const std::vector<float>& values) {
  std::vector<uint8_t> bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(bits >> shift));
  }
  return base64(bytes);
}

}  // namespace

Json usage_json(const TokenUsage& usage) {
  return Json::object({{"prompt_tokens", usage.prompt_tokens},
                       {"completion_tokens", usage.completion_tokens},
                       {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
                       {"prompt_tokens_details", Json::object({{"cached_tokens", usage.cached_tokens}})}});
}

Json timing_json(const RequestRecord& record) {
  const auto since_arrival = [&](Picoseconds when) { return to_seconds(when - record.arrival).value(); };
  return Json::object({{"replica", static_cast<int64_t>(record.replica)},
                       {"queue_s", since_arrival(record.scheduled)},
                       {"ttft_s", since_arrival(record.first_token)},
                       {"e2e_s", since_arrival(record.last_token)},
                       {"preemptions", static_cast<int64_t>(record.preemptions)}});
}

std::string_view finish_text(const AnsweredChoice& choice) {
  return choice.completes_call ? "tool_calls" : finish_reason_text(choice.reason);
}

std::string call_id(const AnswerHead& head, const AnsweredChoice& choice) {
  return fmt::format("call_{}{:04x}", head.id.substr(head.id.find_first_of("-_") + 1), choice.index);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

Json completion_json(const AnswerHead& head, std::span<const AnsweredChoice> choices, const TokenUsage& usage) {
  const bool chat = head.kind == CompletionKind::chat;
  Json list = Json::array();
  for (const AnsweredChoice& choice : choices) {
    Json one = Json::object({{"index", choice.index}});
    if (chat && !choice.tool.empty()) {
      const Json function = Json::object({{"name", choice.tool}, {"arguments", choice.text}});
      const Json call = Json::object({{"id", call_id(head, choice)}, {"type", "function"}, {"function", function}});
      one.set("message",
              Json::object({{"role", "assistant"}, {"content", Json()}, {"tool_calls", Json::array({call})}}));
    } else if (chat) {
      one.set("message", Json::object({{"role", "assistant"}, {"content", choice.text}}));
    } else {
      one.set("text", choice.text);
    }
    one.set("logprobs", Json()).set("finish_reason", finish_text(choice));
    one.set("foretoken", timing_json(choice.record));
    list.push(std::move(one));
  }
  return Json::object({{"id", head.id},
                       {"object", chat ? "chat.completion" : "text_completion"},
                       {"created", head.created},
                       {"model", head.model},
                       {"choices", std::move(list)},
                       {"usage", usage_json(usage)}});
}

std::string embedding_text(const AnswerHead& head, const std::vector<std::vector<float>>& embeddings, bool base64,
                           const TokenUsage& usage) {
  // Written as it goes: a tree of a million numbers would take a second and a hundred megabytes.
  std::string data;
  const auto out = std::back_inserter(data);
  for (size_t i = 0; i < embeddings.size(); ++i) {
    fmt::format_to(out, R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
    if (base64) {
      fmt::format_to(out, R"("{}")", base64_floats(embeddings[i]));
    } else {
      const char* before = "[";
      for (const float value : embeddings[i]) fmt::format_to(out, "{}{}", std::exchange(before, ","), value);
      data += ']';
    }
    data += '}';
  }
  return fmt::format(R"({{"id":{},"object":"list","created":{},"model":{},"data":[{}],)"
                     R"("usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                     json_string(head.id), head.created, json_string(head.model), data, usage.prompt_tokens,
                     usage.prompt_tokens);
}

HttpResponse json_answer(const Json& json, int status) {
  return {.status = status, .body = json.dump(0)};
}

HttpResponse error_answer(int status, const std::string& message) {
  return json_answer(
      Json::object(
          {{"error",
            Json::object(
                {{"message", message}, {"type", error_type(status)}, {"param", Json()}, {"code", int64_t{status}}})}}),
      status);
}

}  // namespace foretoken
