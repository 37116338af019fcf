// Flags out of shell scripts. No shell is run: words are split, variables that are set to a plain value are put in,
// everything else that a shell would work out is left alone and marked.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "training/import/config_entries.h"

namespace foretoken {
namespace {

struct ShellWord {
  std::string text;
  int line = 0;
};

// Words between blanks, brackets, quotes and line continuations; comments are left out. Quotes and brackets part words
// rather than join them: scripts keep their flags in strings and arrays (ARGS="--bf16 --swiglu", ARGS=(...)).
class ShellWords {
 public:
  explicit ShellWords(std::string_view text) : text_(text) {}

  std::vector<ShellWord> take() {
    while (at_ < text_.size()) step();
    flush();
    return std::move(words_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#' && word_.empty()) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    if (text_.substr(at_).starts_with("${")) return variable();
    if (text_.substr(at_).starts_with("$((")) return computed("))");
    if (text_.substr(at_).starts_with("$(")) return computed(")");
    if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\'' || c == '(' || c == ')' || c == ';' ||
        c == '\\') {
      flush();
      if (c == '\n') ++line_;
    } else {
      word_ += c;
    }
    ++at_;
  }
  // ${NAME:-"default"} is one word, without its quotes.
  void variable() {
    for (const size_t stop = std::min({text_.find('}', at_), text_.find('\n', at_), text_.size() - 1}); at_ <= stop;
         ++at_) {
      const char c = text_[at_];
      if (c == '\n') return;  // not closed: the line ends it
      if (c != '"' && c != '\'') word_ += c;
    }
  }
  // What a shell would run or reckon becomes one word, with its dollar.
  void computed(std::string_view end) {
    const size_t found = text_.find(end, at_);
    const size_t stop = found == std::string_view::npos ? text_.size() : found + end.size();
    const std::string_view piece = text_.substr(at_, stop - at_);
    word_ += "$(...)";
    line_ += static_cast<int>(std::ranges::count(piece, '\n'));
    at_ = stop;
  }
  void flush() {
    if (!word_.empty()) words_.push_back({.text = std::move(word_), .line = line_});
    word_.clear();
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::string word_;
  std::vector<ShellWord> words_;
};

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (lower_case(c) >= 'a' && lower_case(c) <= 'z');
  };
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::ranges::all_of(text, fits);
}

class Variables {
 public:
  // NAME=value; false for anything else.
  bool set_by(std::string_view word) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || !is_name(word.substr(0, equals))) return false;
    values_.insert_or_assign(std::string(word.substr(0, equals)), expanded(std::string(word.substr(equals + 1))));
    return true;
  }

  // The word with $NAME, ${NAME}, ${NAME:-default} put in where the whole of it is one; else as it is.
  std::string expanded(std::string word) const {
    if (!word.starts_with("$")) return word;
    std::string_view name = std::string_view(word).substr(1);
    std::string_view fallback;
    bool has_fallback = false;
    if (name.starts_with("{") && name.ends_with("}")) {
      name = name.substr(1, name.size() - 2);
      for (const std::string_view separator : {":-", ":=", "-"}) {
        const size_t at = name.find(separator);
        if (at == std::string_view::npos) continue;
        fallback = name.substr(at + separator.size());
        has_fallback = true;
        name = name.substr(0, at);
        break;
      }
    }
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    return has_fallback ? std::string(fallback) : word;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// --micro-batch-size and --micro-batch-size=4, not a bare -- or a line of dashes.
bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && lower_case(word[2]) >= 'a' && lower_case(word[2]) <= 'z';
}

// Flags with a list of words behind them.
bool takes_words(std::string_view key) {
  return key == "recompute-modules";
}

}  // namespace

ConfigEntries argument_entries(std::string_view text, const std::string& source) {
  constexpr size_t most_bytes = size_t{1} << 20;
  if (text.size() > most_bytes) {
    throw InputError({.source = source, .expected = "a list of arguments of at most 1048576 bytes"});
  }
  ConfigEntries config{.source = source};
  Variables variables;
  ConfigEntry* open = nullptr;  // a flag that may get a value
  for (const ShellWord& word : ShellWords(text).take()) {
    if (is_flag(word.text)) {
      const size_t equals = word.text.find('=');
      std::string key = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
      std::ranges::replace(key, '_', '-');
      std::string value = equals == std::string::npos ? "" : variables.expanded(word.text.substr(equals + 1));
      config.entries.push_back({.key = std::move(key), .value = std::move(value), .line = word.line});
      open = equals == std::string::npos ? &config.entries.back() : nullptr;
    } else {
      // A value stands beside its flag; below it only where each word has a line of its own, and then numbers at least.
      const bool is_value = open != nullptr && (word.line == open->line || parse_number(word.text));
      if (!variables.set_by(word.text) && is_value) {
        open->value += (open->value.empty() ? "" : " ") + variables.expanded(word.text);
      }
      if (open != nullptr && !takes_words(open->key)) open = nullptr;
    }
  }
  for (ConfigEntry& entry : config.entries) entry.computed = entry.value.find('$') != std::string::npos;
  return config;
}

}  // namespace foretoken
