#include "app/page/kept_answers.h"

namespace foretoken {
namespace {

size_t size_of(const std::pair<std::string, std::string>& kept) {
  return kept.first.size() + kept.second.size();
}

}  // namespace

const std::string* KeptAnswers::find(std::string_view question) const {
  for (const auto& [asked, answer] : answers_) {
    if (asked == question) return &answer;
  }
  return nullptr;
}

void KeptAnswers::keep(std::string question, std::string answer) {
  std::pair<std::string, std::string> kept{std::move(question), std::move(answer)};
  if (size_of(kept) > most_bytes_ / 4 || find(kept.first) != nullptr) return;
  bytes_ += size_of(kept);
  answers_.push_back(std::move(kept));
  for (; bytes_ > most_bytes_; answers_.pop_front()) bytes_ -= size_of(answers_.front());
}

}  // namespace foretoken
