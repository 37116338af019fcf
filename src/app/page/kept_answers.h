// Answers that were given, for when the same question comes again: equal questions have equal answers.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace foretoken {

class KeptAnswers {
 public:
  explicit KeptAnswers(size_t most_bytes) : most_bytes_(most_bytes) {}

  const std::string* find(std::string_view question) const;  // null where there is none
  // The oldest go where there is no room; one that is larger than a quarter of the room is not kept.
  void keep(std::string question, std::string answer);

 private:
  size_t most_bytes_, bytes_ = 0;
  std::deque<std::pair<std::string, std::string>> answers_;  // oldest first
};

}  // namespace foretoken
