#include "app/endpoint/chunk_stream.h"

#include <iterator>

#include <fmt/format.h>

namespace foretoken {
namespace {

class ChunkStream final : public AnswerStream {
 public:
  explicit ChunkStream(const AnswerHead& head)
      : chat_(head.kind == CompletionKind::chat),
        open_(fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)", Json(head.id).dump(0),
                          chat_ ? "chat.completion.chunk" : "text_completion", head.created, Json(head.model).dump(0))),
        before_text_(chat_ ? R"(,"delta":{"content":")" : R"(,"text":")"),
        after_text_(chat_ ? R"("},"logprobs":null,"finish_reason":)" : R"(","logprobs":null,"finish_reason":)") {}

  void add_role(std::string& out, int64_t choice) override {
    if (chat_) add_choice(out, choice, R"(","role":"assistant)", "null");
  }
  void add_text(std::string& out, int64_t choice, std::string_view text) override {
    add_choice(out, choice, text, "null");
  }
  void add_last(std::string& out, const AnsweredChoice& choice) override {
    add_choice(
        out, choice.index, choice.text,
        fmt::format(R"("{}","foretoken":{})", finish_reason_text(choice.reason), timing_json(choice.record).dump(0)));
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
  void add_choice(std::string& out, int64_t choice, std::string_view text, std::string_view end) const {
    const fmt::format_int index(choice);
    out.append(open_).append(R"({"index":)").append(index.data(), index.size());
    out.append(before_text_).append(text).append(after_text_).append(end).append("}]}\n\n");
  }

  bool chat_;
  std::string open_;  // up to the choice
  std::string_view before_text_, after_text_;
};

}  // namespace

std::unique_ptr<AnswerStream> make_chunk_stream(const AnswerHead& head) {
  return std::make_unique<ChunkStream>(head);
}

}  // namespace foretoken
