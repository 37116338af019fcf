#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace foretoken {
namespace {

std::string message(const InputProblem& problem) {
  std::string text = problem.source;
  if (problem.line > 0) text += fmt::format(":{}", problem.line);
  if (!problem.path.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", problem.path);
  if (!problem.value.empty()) {
    text += problem.path.empty() ? fmt::format(": {}", problem.value) : fmt::format(" = {}", problem.value);
  }
  if (!problem.expected.empty()) text += fmt::format("\n  expected {}", problem.expected);
  if (!problem.suggestion.empty()) {
    text += fmt::format("{}did you mean {}?", problem.expected.empty() ? "\n  " : "; ", problem.suggestion);
  }
  return text;
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

bool contains_ignoring_case(std::string_view whole, std::string_view part) {
  return std::search(whole.begin(), whole.end(), part.begin(), part.end(),
                     [](char x, char y) { return lower(x) == lower(y); }) != whole.end();
}

}  // namespace

InputError::InputError(InputProblem problem) : std::runtime_error(message(problem)), problem_(std::move(problem)) {}

void ensure(bool condition, const char* why_this_must_hold) {
  if (!condition) throw InternalError(why_this_must_hold);
}

std::optional<std::string> nearest_name(std::string_view typed, std::span<const std::string> candidates) {
  constexpr size_t longest_worth_comparing = 200;
  if (typed.empty() || typed.size() > longest_worth_comparing) return std::nullopt;
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest_worth_comparing) continue;
    const size_t distance = edit_distance(typed, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  // A part of a name ("llama-3.1-8b" for "meta-llama/Llama-3.1-8B-Instruct") is far in edits yet plainly meant.
  for (size_t i = 0; best == nullptr && typed.size() >= 3 && i < candidates.size(); ++i) {
    if (contains_ignoring_case(candidates[i], typed)) best = &candidates[i];
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::string printable(std::string_view text, size_t max_length) {
  std::string result;
  for (const char c : text) {
    if (result.size() >= max_length) return result + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace foretoken
