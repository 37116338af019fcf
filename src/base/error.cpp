#include "base/error.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/field_braces.h"
#include "base/text.h"

namespace foretoken {
namespace {

std::string message(const InputProblem& problem) {
  std::string text = problem.field.empty() ? problem.source : fmt::format("{{{}}}", problem.field);
  if (problem.line > 0) text += fmt::format(":{}", problem.line);
  if (!problem.path.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", problem.path);
  if (!problem.value.empty()) {
    const std::string_view joint = !problem.path.empty() ? " = " : text.empty() ? "" : ": ";
    text += fmt::format("{}{}", joint, problem.value);
  }
  const std::string_view next_line = text.empty() ? "" : "\n  ";
  if (!problem.expected.empty()) text += fmt::format("{}expected {}", next_line, problem.expected);
  if (!problem.suggestion.empty()) {
    text += fmt::format("{}did you mean {}?", problem.expected.empty() ? next_line : "; ", problem.suggestion);
  }
  return text;
}

// Two neighbors that change places are one edit: people's fingers do that.
size_t edit_distance(std::string_view a, std::string_view b) {
  const auto equal = [&](size_t i, size_t j) { return lower_case(a[i]) == lower_case(b[j]); };
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && equal(i - 1, j - 2) && equal(i - 2, j - 1)) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

InputError::InputError(InputProblem problem)
    : std::runtime_error(without_literal_marks(message(problem))), problem_(std::move(problem)) {}

std::string InputError::sentence() const {
  return message(problem_);
}

std::string with_field_names(std::string_view text, const std::function<std::string(std::string_view field)>& name) {
  std::string result;
  while (!text.empty()) {
    const size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos) break;
    // "${name}" is a variable of a script or a configuration file that is shown, "\{name}" what a user wrote.
    const bool is_other = open > 0 && (text[open - 1] == '$' || text[open - 1] == '\\');
    text.remove_prefix(open);
    const size_t length = field_in_braces(text);
    if (length == 0 || is_other) {
      result += '{';
      text.remove_prefix(1);
      continue;
    }
    result += name(text.substr(1, length));
    text.remove_prefix(length + 2);
  }
  return result;
}

void ensure(bool condition, const char* why_this_must_hold) {
  if (!condition) throw InternalError(why_this_must_hold);
}

std::optional<std::string> nearest_name(std::string_view typed, std::span<const std::string> candidates) {
  constexpr size_t longest_worth_comparing = 200, shortest_part = 3;
  if (typed.empty() || typed.size() > longest_worth_comparing) return std::nullopt;
  // Half of a short word is no slip of the pen; two letters that changed places are.
  const size_t most_edits = typed.size() < 5 ? 1 : std::max<size_t>(2, typed.size() / 3);
  const std::string* best = nullptr;
  bool best_contains = false;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest_worth_comparing) continue;
    // A part of a name ("h100" for "h100_sxm") is plainly meant, though another name ("a100") may be fewer edits away.
    const bool contains = typed.size() >= shortest_part && contains_ignoring_case(candidate, typed);
    const size_t distance = edit_distance(typed, candidate);
    if (!contains && (best_contains || distance > most_edits)) continue;
    if (best == nullptr || contains > best_contains || distance < best_distance) {
      best = &candidate;
      best_contains = contains;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::string printable(std::string_view text, size_t max_length) {
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    const bool escape = length == 0 || byte < 0x20 || byte == 0x7f;
    const std::string piece = escape ? fmt::format("\\x{:02x}", byte) : std::string(text.substr(0, length));
    if (result.size() + piece.size() > max_length) return with_literal_braces(result) + "...";
    result += piece;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return with_literal_braces(result);
}

}  // namespace foretoken
