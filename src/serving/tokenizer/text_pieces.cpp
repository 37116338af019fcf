#include "serving/tokenizer/text_pieces.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "serving/tokenizer/tokenizer_flag.h"
#include "serving/tokenizer/unicode_pattern.h"

namespace foretoken {
namespace {

// GPT-2's, which files name by "ByteLevel".
constexpr const char* gpt2_words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string as_utf8(uint32_t code_point) {  // below U+0800
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// Byte-level vocabularies write a byte as a visible character: itself where it is one in Latin-1, else from U+0100 on.
const std::array<std::string, 256>& visible_bytes() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> result;
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      result[byte] = as_utf8(visible ? byte : next++);
    }
    return result;
  }();
  return table;
}

// What a text is looked through for: a regular expression or a plain text.
using Finder = std::function<std::optional<UnicodePattern::Match>(std::string_view text, size_t from)>;

Finder plain_finder(std::string text) {
  return [text = std::move(text)](std::string_view whole, size_t from) -> std::optional<UnicodePattern::Match> {
    const size_t found = whole.find(text, from);
    if (found == std::string_view::npos) return std::nullopt;
    return UnicodePattern::Match{.begin = found, .end = found + text.size()};
  };
}

Finder pattern_finder(const std::string& expression, const JsonView& place) {
  return [pattern = UnicodePattern(expression, place)](std::string_view whole, size_t from) {
    return pattern.find(whole, from);
  };
}

Finder finder_of(const JsonView& pattern) {
  if (const auto text = pattern.find("String")) {
    if (text->string().empty()) text->fail("a text that is not empty");
    return plain_finder(text->string());
  }
  const JsonView expression = pattern.at("Regex");
  return pattern_finder(expression.string(), expression);
}

struct Part {
  std::string_view text;
  bool matches = false;
};

// All of the text, in turn what matches and what lies between; nothing of it is empty.
std::vector<Part> parts_of(std::string_view text, const Finder& find) {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t from = 0; from < text.size();) {
    const auto match = find(text, from);
    if (!match) break;
    if (match->end <= match->begin) {  // of nothing: one character on
      from = std::max(match->end, from) + std::max<size_t>(1, utf8_length(text.substr(std::max(match->end, from))));
      continue;
    }
    if (match->begin > done) parts.push_back({text.substr(done, match->begin - done), false});
    parts.push_back({text.substr(match->begin, match->end - match->begin), true});
    done = from = match->end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), false});
  return parts;
}

std::string with_replaced(std::string_view text, const Finder& find, std::string_view content) {
  std::string result;
  for (const Part& part : parts_of(text, find)) result += part.matches ? content : part.text;
  return result;
}

// What becomes of a match: a piece of its own, dropped, or joined to a neighbor.
enum class MatchUse { isolated, removed, with_previous, with_next, contiguous };

void add_pieces(std::string_view text, const Finder& find, MatchUse use, bool inverted,
                std::vector<std::string>& pieces) {
  bool previous_matches = false, is_first = true;
  bool opens = false;  // a match waits for what follows
  for (const Part& part : parts_of(text, find)) {
    const bool matches = part.matches != inverted;
    const bool joins = !is_first && ((use == MatchUse::with_previous && matches && !previous_matches) ||
                                     (use == MatchUse::contiguous && matches == previous_matches) ||
                                     (use == MatchUse::with_next && opens && !matches));
    if (joins) {
      pieces.back() += part.text;
    } else if (!(use == MatchUse::removed && matches)) {
      pieces.emplace_back(part.text);
    }
    opens = matches;
    previous_matches = matches;
    is_first = false;
  }
}

TextCut cut_at(Finder find, MatchUse use, bool inverted) {
  return [find = std::move(find), use, inverted](TextPieces text) {
    TextPieces result{.starts_text = text.starts_text};
    for (const std::string& piece : text.pieces) add_pieces(piece, find, use, inverted, result.pieces);
    return result;
  };
}

MatchUse match_use(const JsonView& behavior) {
  const std::string name = behavior.string();
  if (name == "Isolated") return MatchUse::isolated;
  if (name == "Removed") return MatchUse::removed;
  if (name == "MergedWithPrevious") return MatchUse::with_previous;
  if (name == "MergedWithNext") return MatchUse::with_next;
  if (name == "Contiguous") return MatchUse::contiguous;
  behavior.fail("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

TextCut byte_level(const JsonView& step) {
  const bool adds_space = flag_at(step, "add_prefix_space", false);
  TextCut words;
  if (flag_at(step, "use_regex", true)) words = cut_at(pattern_finder(gpt2_words, step), MatchUse::isolated, false);
  return [adds_space, words = std::move(words)](TextPieces text) {
    for (std::string& piece : text.pieces) {
      if (adds_space && !piece.starts_with(' ')) piece.insert(0, 1, ' ');
    }
    if (words) text = words(std::move(text));
    for (std::string& piece : text.pieces) {
      std::string visible;
      for (const char byte : piece) visible += visible_bytes()[static_cast<uint8_t>(byte)];
      piece = std::move(visible);
    }
    return text;
  };
}

TextCut metaspace(const JsonView& step) {
  const std::string mark = step.at("replacement").string();
  if (mark.empty()) step.at("replacement").fail("a character");
  const auto scheme = step.find("prepend_scheme");
  const std::string when = scheme ? scheme->string() : flag_at(step, "add_prefix_space", true) ? "always" : "never";
  TextCut words;
  if (flag_at(step, "split", true)) words = cut_at(plain_finder(mark), MatchUse::with_next, false);
  return [mark, when, words = std::move(words), space = plain_finder(" ")](TextPieces text) {
    for (size_t i = 0; i < text.pieces.size(); ++i) {
      std::string& piece = text.pieces[i];
      piece = with_replaced(piece, space, mark);
      const bool prepends = when == "always" || (when == "first" && text.starts_text && i == 0);
      if (prepends && !piece.starts_with(mark)) piece.insert(0, mark);
    }
    return words ? words(std::move(text)) : std::move(text);
  };
}

TextCut cut_of_type(const JsonView& step) {
  const JsonView type = step.at("type");
  const std::string name = type.string();
  if (name == "ByteLevel") return byte_level(step);
  if (name == "Metaspace") return metaspace(step);
  if (name == "Split")
    return cut_at(finder_of(step.at("pattern")), match_use(step.at("behavior")), flag_at(step, "invert", false));
  if (name == "Digits") {
    const bool each = flag_at(step, "individual_digits", false);
    return cut_at(pattern_finder(each ? R"(\p{Nd})" : R"(\p{Nd}+)", type), MatchUse::isolated, false);
  }
  if (name == "WhitespaceSplit") return cut_at(pattern_finder(R"(\s+)", type), MatchUse::removed, false);
  if (name == "Punctuation")
    return cut_at(pattern_finder(R"([\p{P}$+<=>^`|~])", type), match_use(step.at("behavior")), false);
  type.fail("ByteLevel, Metaspace, Split, Digits, Punctuation, WhitespaceSplit or Sequence");
}

TextChange change_of_type(const JsonView& step) {
  const JsonView type = step.at("type");
  const std::string name = type.string();
  if (name == "NFC") return [](std::string text) { return text; };
  if (name == "Prepend") {
    return [first = step.at("prepend").string()](std::string text) { return text.empty() ? text : first + text; };
  }
  if (name == "Replace") {
    return [find = finder_of(step.at("pattern")), content = step.at("content").string()](std::string text) {
      return with_replaced(text, find, content);
    };
  }
  type.fail("NFC, Prepend, Replace or Sequence");
}

}  // namespace

TextChange text_change(const JsonView& normalizer) {
  if (normalizer.at("type").string() != "Sequence") return change_of_type(normalizer);
  std::vector<TextChange> steps;
  for (const JsonView& step : normalizer.at("normalizers").items()) steps.push_back(change_of_type(step));
  return [steps = std::move(steps)](std::string text) {
    for (const TextChange& step : steps) text = step(std::move(text));
    return text;
  };
}

TextCut text_cut(const JsonView& pre_tokenizer) {
  if (pre_tokenizer.at("type").string() != "Sequence") return cut_of_type(pre_tokenizer);
  std::vector<TextCut> steps;
  for (const JsonView& step : pre_tokenizer.at("pretokenizers").items()) steps.push_back(cut_of_type(step));
  return [steps = std::move(steps)](TextPieces text) {
    for (const TextCut& step : steps) text = step(std::move(text));
    return text;
  };
}

}  // namespace foretoken
