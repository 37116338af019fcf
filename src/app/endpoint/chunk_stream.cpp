#include "app/endpoint/chunk_stream.h"

#include <iterator>

#include <fmt/format.h>

namespace foretoken {
namespace {

class ChunkStream final : public AnswerStream {
 public:
  explicit ChunkStream(const AnswerHead& head)
      : head_(&head),
        chat_(head.kind == CompletionKind::chat),
        open_(fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)", Json(head.id).dump(0),
                          chat_ ? "chat.completion.chunk" : "text_completion", head.created,
                          Json(head.model).dump(0))) {}

  void add_role(std::string& out, const AnsweredChoice& choice) override {
    if (!chat_) return;
    if (choice.tool.empty()) {
      add_choice(out, choice, R"("delta":{"content":"","role":"assistant"})", "null");
    } else {
      const std::string delta =
          fmt::format(R"("delta":{{"role":"assistant","content":null,"tool_calls":[{{"index":0,"id":"{}",)"
                      R"("type":"function","function":{{"name":{},"arguments":""}}}}]}})",
                      call_id(*head_, choice), Json(choice.tool).dump(0));
      add_choice(out, choice, delta, "null");
    }
  }
  void add_text(std::string& out, const AnsweredChoice& choice, std::string_view text) override {
    add_piece(out, choice, text, "null");
  }
  void add_last(std::string& out, const AnsweredChoice& choice) override {
    add_piece(out, choice, choice.text,
              fmt::format(R"("{}","foretoken":{})", finish_text(choice), timing_json(choice.record).dump(0)));
  }
  void end(std::string& out, const TokenUsage& usage, bool include_usage) override {
    if (include_usage) {
      out += open_;
      fmt::format_to(std::back_inserter(out), "],\"usage\":{}}}\n\n", usage_json(usage).dump(0));
    }
    out += "data: [DONE]\n\n";
  }

 private:
  // `end`: the reason of the end and what follows it.
  void add_piece(std::string& out, const AnsweredChoice& choice, std::string_view text, std::string_view end) const {
    const std::string piece = escaped(text);
    if (!chat_) {
      add_choice(out, choice, fmt::format(R"("text":"{}")", piece), end);
    } else if (choice.tool.empty()) {
      add_choice(out, choice, fmt::format(R"("delta":{{"content":"{}"}})", piece), end);
    } else {
      add_choice(out, choice,
                 fmt::format(R"("delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{}"}}}}]}})", piece),
                 end);
    }
  }
  void add_choice(std::string& out, const AnsweredChoice& choice, std::string_view piece, std::string_view end) const {
    const fmt::format_int index(choice.index);
    out.append(open_).append(R"({"index":)").append(index.data(), index.size()).append(1, ',').append(piece);
    out.append(R"(,"logprobs":null,"finish_reason":)").append(end).append("}]}\n\n");
  }

  const AnswerHead* head_;
  bool chat_;
  std::string open_;  // up to the choice
};

}  // namespace

std::unique_ptr<AnswerStream> make_chunk_stream(const AnswerHead& head) {
  return std::make_unique<ChunkStream>(head);
}

}  // namespace foretoken
