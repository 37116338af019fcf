#include "accelerator/formats/timeloop_directive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/kinds.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t most_factors = 64;

struct DirectiveName {
  std::string_view name;
  TimeloopDirective::Kind kind;
};

constexpr std::array directive_names = {
    DirectiveName{"temporal", TimeloopDirective::Kind::temporal},
    DirectiveName{"spatial", TimeloopDirective::Kind::spatial},
    DirectiveName{"dataspace", TimeloopDirective::Kind::dataspace},
    DirectiveName{"datatype", TimeloopDirective::Kind::dataspace},
    DirectiveName{"bypass", TimeloopDirective::Kind::dataspace},
    DirectiveName{"bypassing", TimeloopDirective::Kind::dataspace},
    DirectiveName{"utilization", TimeloopDirective::Kind::utilization},
    DirectiveName{"parallelism", TimeloopDirective::Kind::utilization},
};

bool separates(char letter) {
  return letter == ' ' || letter == ',' || letter == '\t' || letter == '\n';
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// Walks along the text of factors.
class FactorText {
 public:
  FactorText(const JsonView& view, std::string text) : view_(view), text_(std::move(text)) {}

  std::vector<TimeloopFactor> read() {
    std::vector<TimeloopFactor> factors;
    skip_separators();
    while (at_ < text_.size()) {
      if (factors.size() == most_factors) view_.fail(fmt::format("at most {} factors", most_factors));
      factors.push_back(factor());
      skip_separators();
    }
    return factors;
  }

 private:
  TimeloopFactor factor() {
    TimeloopFactor factor{.dimension = name()};
    skip_spaces();
    if (taken('<')) factor.relation = TimeloopFactor::Relation::at_most;
    const bool relation = taken('=');
    if (factor.relation == TimeloopFactor::Relation::at_most && !relation) fail();
    skip_spaces();
    factor.bound = number();
    // `N=8,4` has a remainder, `N=8,C=4` another factor.
    if (at_ + 1 < text_.size() && text_[at_] == ',' && is_digit(text_[at_ + 1])) {
      ++at_;
      factor.last = number();
      if (*factor.last < 1 || *factor.last > factor.bound) view_.fail("a remainder between 1 and its factor");
    }
    return factor;
  }

  // Up to a relation where the word has one, else up to its last digits.
  std::string name() {
    const size_t end = std::min(text_.size(), text_.find_first_of(" ,\t\n", at_));
    size_t stop = std::min(text_.find_first_of("=<", at_), end);
    if (stop == end) {
      const size_t relation = text_.find_first_not_of(" \t", end);
      if (relation == std::string::npos || (text_[relation] != '=' && text_[relation] != '<')) {
        while (stop > at_ && is_digit(text_[stop - 1])) --stop;
      }
    }
    const std::string name = text_.substr(at_, stop - at_);
    if (name.empty()) fail();
    at_ = stop;
    return name;
  }

  int64_t number() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const auto value = parse_integer(std::string_view(text_).substr(start, at_ - start));
    if (!value || *value > max_dimension_size) fail();
    return *value;
  }

  bool taken(char letter) {
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  void skip_separators() {
    while (at_ < text_.size() && separates(text_[at_])) ++at_;
  }
  [[noreturn]] void fail() const {
    view_.fail(fmt::format("factors such as `R=3 P=16`; character {} does not fit", at_ + 1));
  }

  const JsonView& view_;
  std::string text_;
  size_t at_ = 0;
};

std::vector<std::string> name_list(const JsonView& view) {
  std::vector<std::string> names;
  if (view.is(Json::Kind::string)) {
    std::string text = view.string();
    std::replace_if(text.begin(), text.end(), separates, ' ');
    for (const std::string_view word : split_words(text, " ")) names.emplace_back(word);
    return names;
  }
  for (const JsonView& item : view.items()) names.push_back(item.string());
  return names;
}

TimeloopDirective::Kind read_directive_kind(const JsonView& view) {
  return kind_in(view, directive_names, "temporal, spatial, dataspace, bypass or utilization").kind;
}

}  // namespace

std::vector<TimeloopFactor> read_timeloop_factors(const JsonView& view) {
  if (view.is(Json::Kind::string)) return FactorText(view, view.string()).read();
  std::vector<TimeloopFactor> factors;
  if (view.is(Json::Kind::object)) {
    for (const auto& [name, bound] : view.members()) {
      factors.push_back({.dimension = name, .bound = bound.integer({.least = 0, .most = max_dimension_size})});
    }
    return factors;
  }
  for (const JsonView& item : view.items()) {
    for (TimeloopFactor& factor : FactorText(item, item.string()).read()) factors.push_back(std::move(factor));
  }
  return factors;
}

std::vector<std::string> read_timeloop_permutation(const JsonView& view) {
  return name_list(view);
}

int directive_level(const TimeloopDirective& directive, const Architecture& architecture) {
  // Files written against an architecture with ranges repeat them: `PE[0..15]`.
  const std::string name = directive.target.substr(0, directive.target.find('['));
  const int level = find_level(architecture, name);
  if (level < 0) {
    fail_directive(directive, directive.target, "a level of the architecture",
                   nearest_name(name, level_names(architecture)).value_or(""));
  }
  if (level + 1 == std::ssize(architecture.levels)) {
    fail_directive(directive, directive.target, "a level above the one that computes, which has no loops");
  }
  return level;
}

int directive_tensor(const TimeloopDirective& directive, const std::string& name, const Problem& problem) {
  const int tensor = find_tensor(problem, name);
  if (tensor >= 0) return tensor;
  fail_directive(directive, name, "a tensor of the problem", nearest_name(name, tensor_names(problem)).value_or(""));
}

int directive_dimension(const TimeloopDirective& directive, const std::string& name, const Problem& problem) {
  const int dimension = find_dimension(problem, name);
  if (dimension >= 0) return dimension;
  fail_directive(directive, name, "a dimension of the problem",
                 nearest_name(name, dimension_names(problem)).value_or(""));
}

std::vector<int> directive_permutation(const TimeloopDirective& directive, const Problem& problem) {
  std::vector<int> order;
  const auto add = [&](const std::string& name) {
    const int dimension = directive_dimension(directive, name, problem);
    if (std::find(order.begin(), order.end(), dimension) != order.end()) {
      fail_directive(directive, name, "each dimension once in its permutation");
    }
    order.push_back(dimension);
  };
  for (const std::string& word : directive.permutation) {
    if (find_dimension(problem, word) >= 0) {
      add(word);
    } else {
      for (const char letter : word) add(std::string(1, letter));
    }
  }
  return order;
}

TimeloopDirective read_timeloop_directive(const JsonView& view, const std::string& target,
                                          TimeloopDirective::Kind kind) {
  view.allow_only({"target", "name", "type", "factors", "permutation", "split", "keep", "bypass", "min",
                   "min_utilization", "min_parallelism"});
  TimeloopDirective directive{
      .target = target, .kind = kind, .source = view.source(), .path = view.path(), .line = view.value().line()};
  if (const auto factors = view.find("factors")) directive.factors = read_timeloop_factors(*factors);
  if (const auto permutation = view.find("permutation"))
    directive.permutation = read_timeloop_permutation(*permutation);
  if (const auto split = view.find("split")) {
    // More than there are dimensions is all of them: Timeloop's files write 999.
    const int64_t given = split->integer({.least = 0, .most = 1 << 20});
    directive.split = static_cast<int>(std::min<int64_t>(given, max_problem_dimensions));
  }
  if (const auto keep = view.find("keep")) directive.keep = name_list(*keep);
  if (const auto bypass = view.find("bypass")) directive.bypass = name_list(*bypass);
  for (const std::string_view key : {"min", "min_utilization", "min_parallelism"}) {
    if (const auto least = view.find(key)) directive.min_utilization = least->number({.least = 0, .most = 1});
  }
  return directive;
}

TimeloopDirective read_timeloop_directive(const JsonView& view) {
  const std::string_view key = view.has("name") && !view.has("target") ? "name" : "target";
  return read_timeloop_directive(view, view.at(key).string(), read_directive_kind(view.at("type")));
}

void fail_directive(const TimeloopDirective& directive, std::string value, std::string expected,
                    std::string suggestion) {
  throw InputError({.source = directive.source,
                    .line = directive.line,
                    .path = directive.path,
                    .value = printable(value),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

}  // namespace foretoken
