#include "serving/tokenizer/token_counter.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "serving/tokenizer/tokenizer_flag.h"

namespace foretoken {
namespace {

// Words come again and again; those that are remembered take some tens of megabytes at most.
constexpr size_t most_words_kept = 300'000, longest_word_kept = 64;
constexpr std::string_view spaces = " \t\r\n";

// The tokens around a text in a template such as "<s> $A".
int64_t template_tokens(const JsonView& processor) {
  const std::string type = processor.at("type").string();
  int64_t tokens = 0;
  if (type == "Sequence") {
    for (const JsonView& step : processor.at("processors").items()) tokens += template_tokens(step);
  } else if (type == "TemplateProcessing") {
    for (const JsonView& part : processor.at("single").items()) tokens += part.has("SpecialToken") ? 1 : 0;
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    tokens = 2;
  }
  return tokens;
}

}  // namespace

TokenCounter TokenCounter::parse(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const JsonView file(json, source);
  if (!file.is(Json::Kind::object) || !file.has("model")) file.fail("a tokenizer.json, an object with a \"model\"");
  TokenCounter result(BytePairs::parse(file.at("model")));
  if (const auto normalizer = file.find("normalizer")) result.changes_.push_back(text_change(*normalizer));
  if (const auto pre_tokenizer = file.find("pre_tokenizer")) result.cuts_.push_back(text_cut(*pre_tokenizer));
  result.specials_.resize(256);
  if (const auto added = file.find("added_tokens")) result.read_specials(*added);
  if (const auto processor = file.find("post_processor")) result.around_prompt_ = template_tokens(*processor);
  return result;
}

TokenCounter TokenCounter::read(const std::filesystem::path& file) {
  return parse(read_file(file, JsonLimits().max_bytes), file.string());
}

void TokenCounter::read_specials(const JsonView& added) {
  for (const JsonView& token : added.items()) {
    Special special{token.at("content").string(), flag_at(token, "lstrip"), flag_at(token, "rstrip")};
    if (special.text.empty()) continue;
    specials_[static_cast<uint8_t>(special.text.front())].push_back(std::move(special));
  }
  for (std::vector<Special>& group : specials_) {
    std::stable_sort(group.begin(), group.end(),
                     [](const Special& a, const Special& b) { return a.text.size() > b.text.size(); });
  }
}

const TokenCounter::Special* TokenCounter::special_at(std::string_view text) const {
  for (const Special& special : specials_[static_cast<uint8_t>(text.front())]) {
    if (text.starts_with(special.text)) return &special;
  }
  return nullptr;
}

int64_t TokenCounter::answer_tokens(std::string_view text) {
  int64_t tokens = 0;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Special* special = special_at(text.substr(at));
    if (special == nullptr) {
      ++at;
      continue;
    }
    std::string_view before = text.substr(done, at - done);
    if (special->takes_space_before) before = before.substr(0, before.find_last_not_of(spaces) + 1);
    tokens += tokens_between(before, done == 0) + 1;
    at += special->text.size();
    if (special->takes_space_after) at = std::min(text.find_first_not_of(spaces, at), text.size());
    done = at;
  }
  return tokens + tokens_between(text.substr(done), done == 0);
}

int64_t TokenCounter::tokens_between(std::string_view text, bool starts_text) {
  if (text.empty()) return 0;
  TextPieces pieces{.pieces = {std::string(text)}, .starts_text = starts_text};
  for (const TextChange& change : changes_) pieces.pieces[0] = change(std::move(pieces.pieces[0]));
  for (const TextCut& cut : cuts_) pieces = cut(std::move(pieces));
  int64_t tokens = 0;
  for (const std::string& word : pieces.pieces) tokens += word_tokens(word);
  return tokens;
}

int64_t TokenCounter::word_tokens(const std::string& word) {
  if (word.size() > longest_word_kept) return model_.tokens(word);
  if (const auto known = counted_.find(word); known != counted_.end()) return known->second;
  const int64_t tokens = model_.tokens(word);
  if (counted_.size() < most_words_kept) counted_.emplace(word, tokens);
  return tokens;
}

}  // namespace foretoken
