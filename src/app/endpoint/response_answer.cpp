#include "app/endpoint/response_answer.h"

#include <iterator>

#include <fmt/format.h>

namespace foretoken {
namespace {

std::string message_id(const AnswerHead& head) {
  return "msg_" + head.id.substr(head.id.find('_') + 1);
}

Json text_part(const std::string& text) {
  return Json::object({{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}});
}

Json message_item(const AnswerHead& head, const char* status, Json content) {
  return Json::object({{"type", "message"},
                       {"id", message_id(head)},
                       {"status", status},
                       {"role", "assistant"},
                       {"content", std::move(content)}});
}

const char* status_of(const AnsweredChoice& choice) {
  return choice.reason == FinishReason::length && !choice.completes_call ? "incomplete" : "completed";
}

std::string call_item_id(const AnswerHead& head) {
  return "fc_" + head.id.substr(head.id.find('_') + 1);
}

Json call_item(const AnswerHead& head, const AnsweredChoice& choice, const char* status, const std::string& arguments) {
  return Json::object({{"type", "function_call"},
                       {"id", call_item_id(head)},
                       {"call_id", call_id(head, choice)},
                       {"name", choice.tool},
                       {"arguments", arguments},
                       {"status", status}});
}

Json whole_item(const AnswerHead& head, const AnsweredChoice& choice) {
  if (!choice.tool.empty()) return call_item(head, choice, status_of(choice), choice.text);
  return message_item(head, status_of(choice), Json::array({text_part(choice.text)}));
}

// What is known of it before it ends.
Json open_response(const AnswerHead& head) {
  return Json::object({{"id", head.id},
                       {"object", "response"},
                       {"created_at", head.created},
                       {"model", head.model},
                       {"status", "in_progress"},
                       {"error", Json()},
                       {"incomplete_details", Json()},
                       {"max_output_tokens", head.max_output_tokens ? Json(*head.max_output_tokens) : Json()},
                       {"parallel_tool_calls", true},
                       {"text", Json::object({{"format", head.text_format}})},
                       {"tool_choice", head.tool_choice},
                       {"tools", head.tools},
                       {"output", Json::array()},
                       {"usage", Json()}});
}

Json response_usage(const TokenUsage& usage) {
  return Json::object({{"input_tokens", usage.prompt_tokens},
                       {"input_tokens_details", Json::object({{"cached_tokens", usage.cached_tokens}})},
                       {"output_tokens", usage.completion_tokens},
                       {"output_tokens_details", Json::object({{"reasoning_tokens", int64_t{0}}})},
                       {"total_tokens", usage.prompt_tokens + usage.completion_tokens}});
}

class ResponseStream final : public AnswerStream {
 public:
  explicit ResponseStream(const AnswerHead& head)
      : head_(&head),
        text_place_(fmt::format(R"("item_id":"{}","output_index":0,"content_index":0)", message_id(head))),
        call_place_(fmt::format(R"("item_id":"{}","output_index":0)", call_item_id(head))) {}

  void begin(std::string& out) override {
    for (const char* kind : {"response.created", "response.in_progress"}) {
      add(out, kind, fmt::format(R"("response":{})", open_response(*head_).dump(0)));
    }
  }
  void add_role(std::string& out, const AnsweredChoice& choice) override {
    const bool calls = !choice.tool.empty();
    const Json item =
        calls ? call_item(*head_, choice, "in_progress", "") : message_item(*head_, "in_progress", Json::array());
    add(out, "response.output_item.added", fmt::format(R"("output_index":0,"item":{})", item.dump(0)));
    if (calls) return;
    add(out, "response.content_part.added", fmt::format(R"({},"part":{})", text_place_, text_part("").dump(0)));
  }
  void add_text(std::string& out, const AnsweredChoice& choice, std::string_view text) override {
    const bool calls = !choice.tool.empty();
    add(out, calls ? "response.function_call_arguments.delta" : "response.output_text.delta",
        fmt::format(R"({},"delta":"{}")", calls ? call_place_ : text_place_, escaped(text)));
    text_ += text;
  }
  void add_last(std::string& out, const AnsweredChoice& choice) override {
    if (!choice.text.empty()) add_text(out, choice, choice.text);
    last_ = choice;
    last_.text = text_;
    const std::string text = Json(text_).dump(0);
    if (choice.tool.empty()) {
      add(out, "response.output_text.done", fmt::format(R"({},"text":{})", text_place_, text));
      add(out, "response.content_part.done", fmt::format(R"({},"part":{})", text_place_, text_part(text_).dump(0)));
    } else {
      add(out, "response.function_call_arguments.done", fmt::format(R"({},"arguments":{})", call_place_, text));
    }
    add(out, "response.output_item.done",
        fmt::format(R"("output_index":0,"item":{})", whole_item(*head_, last_).dump(0)));
  }
  void end(std::string& out, const TokenUsage& usage, bool /*include_usage*/) override {
    add(out, fmt::format("response.{}", status_of(last_)),
        fmt::format(R"("response":{})", response_json(*head_, last_, usage).dump(0)));
  }

 private:
  void add(std::string& out, std::string_view kind, std::string_view members) {
    fmt::format_to(std::back_inserter(out), "event: {}\ndata: {{\"type\":\"{}\",\"sequence_number\":{},{}}}\n\n", kind,
                   kind, next_++, members);
  }

  const AnswerHead* head_;
  std::string text_place_, call_place_;  // in every event about the text, or the arguments of the call
  std::string text_;                     // all of it so far: the last events repeat it
  AnsweredChoice last_;
  int64_t next_ = 0;
};

}  // namespace

Json response_json(const AnswerHead& head, const AnsweredChoice& choice, const TokenUsage& usage) {
  Json response = open_response(head);
  response.set("status", status_of(choice));
  if (status_of(choice) == std::string_view("incomplete")) {
    response.set("incomplete_details", Json::object({{"reason", "max_output_tokens"}}));
  }
  response.set("output", Json::array({whole_item(head, choice)}));
  response.set("usage", response_usage(usage)).set("foretoken", timing_json(choice.record));
  return response;
}

std::unique_ptr<AnswerStream> make_response_stream(const AnswerHead& head) {
  return std::make_unique<ResponseStream>(head);
}

}  // namespace foretoken
