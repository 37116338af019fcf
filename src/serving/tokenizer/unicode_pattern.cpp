#include "serving/tokenizer/unicode_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <array>

#include <fmt/format.h>
#include <pcre2.h>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t longest_expression = 20'000;
constexpr uint32_t most_match_steps = 10'000'000;

}  // namespace

struct UnicodePattern::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  pcre2_match_data* places = nullptr;
  std::string source;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_data_free(places);
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

UnicodePattern::UnicodePattern(const std::string& expression, const JsonView& place) {
  if (expression.size() > longest_expression)
    place.fail(fmt::format("an expression of at most {} bytes", longest_expression));
  const auto compiled = std::make_shared<Compiled>();
  int error = 0;
  size_t offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (compiled->code == nullptr) {
    std::array<PCRE2_UCHAR, 256> why{};
    pcre2_get_error_message(error, why.data(), why.size());
    place.fail(
        fmt::format("a regular expression ({} at offset {})", reinterpret_cast<const char*>(why.data()), offset));
  }
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // where it is not to be had, matching is slower
  compiled->limits = pcre2_match_context_create(nullptr);
  compiled->places = pcre2_match_data_create_from_pattern(compiled->code, nullptr);
  ensure(compiled->limits != nullptr && compiled->places != nullptr, "memory for a match is there");
  pcre2_set_match_limit(compiled->limits, most_match_steps);
  compiled->source = place.source();
  compiled_ = compiled;
}

std::optional<UnicodePattern::Match> UnicodePattern::find(std::string_view text, size_t from) const {
  const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, compiled_->places, compiled_->limits);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw InputError({.source = compiled_->source,
                      .value = printable(text.substr(from)),
                      .expected = "a text that the file's expression takes apart in less work"});
  }
  const size_t* ends = pcre2_get_ovector_pointer(compiled_->places);
  return Match{.begin = ends[0], .end = ends[1]};
}

}  // namespace foretoken
