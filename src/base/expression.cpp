#include "base/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

// Recursive descent to postfix; depth is bounded.
class ExpressionParser {
 public:
  ExpressionParser(Expression& result, std::string_view text) : result_(result), text_(text) {}

  void parse() {
    either(0);
    skip_spaces();
    if (at_ < text_.size()) fail("the end of the expression, or an operator");
  }

 private:
  using Step = Expression::Step;
  static constexpr int deepest = 32;

  void either(int depth) {
    both(depth);
    while (word("or")) both(depth), emit(Step::either);
  }
  void both(int depth) {
    comparison(depth);
    while (word("and")) comparison(depth), emit(Step::both);
  }
  void comparison(int depth) {
    sum(depth);
    if (sign("<=")) {
      sum(depth), emit(Step::less_or_equal);
    } else if (sign("<")) {
      sum(depth), emit(Step::less);
    } else if (sign("=")) {
      sum(depth), emit(Step::equal);
    }
  }
  void sum(int depth) {
    product(depth);
    while (true) {
      if (sign("+")) {
        product(depth), emit(Step::add);
      } else if (sign("-")) {
        product(depth), emit(Step::subtract);
      } else {
        return;
      }
    }
  }
  void product(int depth) {
    factor(depth);
    while (true) {
      if (sign("*")) {
        factor(depth), emit(Step::multiply);
      } else if (sign("/")) {
        factor(depth), emit(Step::divide);
      } else {
        return;
      }
    }
  }
  void factor(int depth) {
    if (depth > deepest) fail("at most 32 nested parentheses");
    skip_spaces();
    if (sign("-")) {
      factor(depth + 1), emit(Step::negate);
      return;
    }
    if (sign("(")) {
      either(depth + 1);
      if (!sign(")")) fail("a closing parenthesis");
      return;
    }
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.')) {
      number();
      return;
    }
    const std::string_view name = identifier();
    if (name.empty()) fail("a number, a name or a parenthesis");
    if (!sign("(")) {
      result_.items_.push_back({.step = Step::name, .number = 0, .name = std::string(name)});
      return;
    }
    call(name, depth);
  }
  void call(std::string_view name, int depth) {
    either(depth + 1);
    if (name == "ceil") {
      emit(Step::round_up);
    } else if (name == "min" || name == "max") {
      if (!sign(",")) fail("a second argument");
      either(depth + 1);
      emit(name == "min" ? Step::least : Step::most);
    } else {
      fail("min, max or ceil");
    }
    if (!sign(")")) fail("a closing parenthesis");
  }
  void number() {
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.'))
      ++at_;
    const std::optional<double> value = parse_number(text_.substr(start, at_ - start));
    if (!value) at_ = start, fail("a number");
    result_.items_.push_back({.step = Step::number, .number = *value, .name = {}});
  }
  std::string_view identifier() {
    const size_t start = at_;
    const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    while (at_ < text_.size() && fits(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  bool sign(std::string_view expected) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  bool word(std::string_view expected) {
    skip_spaces();
    const size_t start = at_;
    if (identifier() == expected) return true;
    at_ = start;
    return false;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  void emit(Step step) { result_.items_.push_back({.step = step, .number = 0, .name = {}}); }
  [[noreturn]] void fail(const std::string& expected) const {
    result_.fail(printable(text_), fmt::format("{} at character {}", expected, at_ + 1));
  }

  Expression& result_;
  std::string_view text_;
  size_t at_ = 0;
};

Expression Expression::constant(double value) {
  Expression result;
  result.text_ = number_text(value);
  result.items_.push_back({.step = Step::number, .number = value, .name = {}});
  return result;
}

Expression Expression::parse(std::string_view text, const std::string& source, const std::string& path) {
  Expression result;
  result.source_ = source;
  result.path_ = path;
  constexpr size_t longest = 500;
  if (text.empty() || text.size() > longest) result.fail(printable(text), "an expression of 1 to 500 characters");
  result.text_ = text;
  ExpressionParser(result, text).parse();
  return result;
}

double Expression::value(const Names& names) const {
  double stack[256] = {};
  size_t size = 0;
  const auto pop = [&] { return stack[--size]; };
  for (const Item& item : items_) {
    if (item.step == Step::number || item.step == Step::name) {
      ensure(size < std::size(stack), "an expression this deep was refused when it was read");
      if (item.step == Step::number) {
        stack[size++] = item.number;
        continue;
      }
      const std::optional<double> known = names(item.name);
      if (!known) fail(item.name, "a name that the operator has");
      stack[size++] = *known;
      continue;
    }
    const double b = pop();
    if (item.step == Step::negate || item.step == Step::round_up) {
      stack[size++] = item.step == Step::negate ? -b : std::ceil(b);
      continue;
    }
    const double a = pop();
    double result = 0;
    switch (item.step) {
      case Step::add:
        result = a + b;
        break;
      case Step::subtract:
        result = a - b;
        break;
      case Step::multiply:
        result = a * b;
        break;
      case Step::divide:
        if (b == 0) fail(text_, "no division by zero");
        result = a / b;
        break;
      case Step::least:
        result = std::min(a, b);
        break;
      case Step::most:
        result = std::max(a, b);
        break;
      case Step::less:
        result = a < b ? 1 : 0;
        break;
      case Step::less_or_equal:
        result = a <= b ? 1 : 0;
        break;
      case Step::equal:
        result = a == b ? 1 : 0;
        break;
      case Step::both:
        result = a != 0 && b != 0 ? 1 : 0;
        break;
      case Step::either:
        result = a != 0 || b != 0 ? 1 : 0;
        break;
      default:
        ensure(false, "every step of an expression is known");
    }
    stack[size++] = result;
  }
  return size == 0 ? 0 : stack[0];
}

void Expression::fail(const std::string& value, const std::string& expected) const {
  throw InputError({.source = source_, .path = path_, .value = value, .expected = expected});
}

}  // namespace foretoken
