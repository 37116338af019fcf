// An answer as server-sent events, written for every token: without building documents.
#pragma once

#include <string>
#include <string_view>

#include "app/endpoint/completion_answer.h"

namespace foretoken {

// Its head outlives it.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  virtual void begin(std::string& /*out*/) {}                                       // the request was taken
  virtual void add_role(std::string& /*out*/, const AnsweredChoice& /*choice*/) {}  // before the first text of a choice
  virtual void add_text(std::string& out, const AnsweredChoice& choice, std::string_view text) = 0;
  virtual void add_last(std::string& out, const AnsweredChoice& choice) = 0;  // its text: what was not sent yet
  virtual void end(std::string& out, const TokenUsage& usage, bool include_usage) = 0;
};

}  // namespace foretoken
