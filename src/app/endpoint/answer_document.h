// Made-up JSON that follows a schema, as long as an answer is to be.
#pragma once

#include <cstdint>
#include <string>

#include "app/endpoint/answer_schema.h"

namespace foretoken {

// A document with a place where words may be added, and one for spaces: before its last bracket.
struct AnswerDocument {
  std::string head, middle, tail;  // words between head and middle, spaces between middle and tail
  int64_t room = 0;                // bytes of words that the schema allows

  int64_t least_bytes() const { return static_cast<int64_t>(head.size() + middle.size() + tail.size()); }
  // Writes the document, made `whole_bytes` long, over words: those which begin at byte `first` of the answer.
  void write_over(std::string& words, int64_t first, int64_t whole_bytes) const;
};

// Equal for equal keys. At most `bytes` long, or as long as the shortest that follows the schema.
AnswerDocument make_answer_document(const AnswerSchema& schema, uint64_t key, int64_t bytes);

}  // namespace foretoken
