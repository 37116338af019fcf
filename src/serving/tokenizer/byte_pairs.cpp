#include "serving/tokenizer/byte_pairs.h"

#include <queue>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/tokenizer/tokenizer_flag.h"

namespace foretoken {
namespace {

constexpr int32_t unknown_symbol = -1;

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// "a b" in older files, ["a", "b"] in newer ones.
std::pair<std::string, std::string> pair_of(const JsonView& merge) {
  if (merge.is(Json::Kind::array)) {
    const std::vector<JsonView> both = merge.items();
    if (both.size() == 2) return {both[0].string(), both[1].string()};
  } else {
    const std::string text = merge.string();
    const size_t space = text.find(' ', 1);
    if (space != std::string::npos) return {text.substr(0, space), text.substr(space + 1)};
  }
  merge.fail("two tokens to join");
}

// A word while its pairs are joined: symbols in a list, so that joining costs the same anywhere.
struct SymbolList {
  std::vector<int32_t> symbols;
  std::vector<size_t> before, after;

  explicit SymbolList(std::vector<int32_t> all)
      : symbols(std::move(all)), before(symbols.size()), after(symbols.size()) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      before[i] = i == 0 ? none : i - 1;
      after[i] = i + 1 < symbols.size() ? i + 1 : none;
    }
  }

  void join(size_t left, int32_t symbol) {
    const size_t right = after[left];
    symbols[left] = symbol;
    symbols[right] = gone;
    after[left] = after[right];
    if (after[left] != none) before[after[left]] = left;
  }

  static constexpr size_t none = SIZE_MAX;
  static constexpr int32_t gone = -2;
};

struct Candidate {
  uint32_t rank = 0;
  size_t left = 0;
  int32_t first = 0, second = 0, joined = 0;

  // The first in the list of merges, then the leftmost, is on top.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

}  // namespace

BytePairs BytePairs::parse(const JsonView& model) {
  if (const auto type = model.find("type"); type && type->string() != "BPE") {
    type->fail("BPE (byte-pair encoding), the only kind of tokenizer that is counted here");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const auto value = model.find(key); value && !value->string().empty())
      value->fail("an empty text; others are not supported");
  }
  BytePairs result;
  for (const auto& [token, id] : model.at("vocab").members()) {
    result.ids_.emplace(token, static_cast<int32_t>(id.integer({.least = 0, .most = INT32_MAX})));
  }
  const auto id_of = [&](const std::string& token, const JsonView& merge) {
    const auto found = result.ids_.find(token);
    if (found == result.ids_.end())
      merge.fail(fmt::format("tokens of the vocabulary; {} is not among them", printable(token)));
    return found->second;
  };
  uint32_t rank = 0;
  for (const JsonView& merge : model.at("merges").items()) {
    const auto [left, right] = pair_of(merge);
    const Join join{.rank = rank++, .joined = id_of(left + right, merge)};
    result.joins_.emplace(pair_key(id_of(left, merge), id_of(right, merge)), join);
  }
  result.bytes_for_unknown_ = flag_at(model, "byte_fallback");
  result.whole_words_first_ = flag_at(model, "ignore_merges");
  result.joins_unknown_ = flag_at(model, "fuse_unk");
  result.has_unknown_ = model.has("unk_token");
  return result;
}

void BytePairs::add_unknown(std::string_view character, std::vector<int32_t>& symbols) const {
  if (bytes_for_unknown_) {
    std::vector<int32_t> bytes;
    for (const char byte : character) {
      const auto found = ids_.find(fmt::format("<0x{:02X}>", static_cast<uint8_t>(byte)));
      if (found != ids_.end()) bytes.push_back(found->second);
    }
    if (bytes.size() == character.size()) {
      symbols.insert(symbols.end(), bytes.begin(), bytes.end());
      return;
    }
  }
  if (!has_unknown_ || (joins_unknown_ && !symbols.empty() && symbols.back() == unknown_symbol)) return;
  symbols.push_back(unknown_symbol);
}

std::vector<int32_t> BytePairs::characters(std::string_view word) const {
  std::vector<int32_t> symbols;
  for (size_t at = 0; at < word.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(word.substr(at)));
    const std::string character(word.substr(at, length));
    const auto found = ids_.find(character);
    if (found != ids_.end()) {
      symbols.push_back(found->second);
    } else {
      add_unknown(character, symbols);
    }
    at += length;
  }
  return symbols;
}

int64_t BytePairs::tokens(std::string_view word) const {
  if (whole_words_first_ && ids_.contains(std::string(word))) return 1;
  SymbolList list(characters(word));
  std::priority_queue<Candidate> candidates;
  const auto look_at = [&](size_t left) {
    if (left == SymbolList::none || list.after[left] == SymbolList::none) return;
    const int32_t first = list.symbols[left], second = list.symbols[list.after[left]];
    if (first < 0 || second < 0) return;
    const auto found = joins_.find(pair_key(first, second));
    if (found == joins_.end()) return;
    candidates.push({found->second.rank, left, first, second, found->second.joined});
  };
  for (size_t i = 0; i < list.symbols.size(); ++i) look_at(i);
  auto left = static_cast<int64_t>(list.symbols.size());
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    const size_t right = list.after[next.left];
    // An earlier join may have taken either of them.
    if (list.symbols[next.left] != next.first || right == SymbolList::none || list.symbols[right] != next.second)
      continue;
    list.join(next.left, next.joined);
    --left;
    look_at(list.before[next.left]);
    look_at(next.left);
  }
  return left;
}

}  // namespace foretoken
