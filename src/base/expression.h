// Arithmetic on named numbers, as rules in data files use it: + - * / ( ) min max ceil, comparisons, `and`, `or`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

class Expression {
 public:
  // nullopt: the name is not known.
  using Names = std::function<std::optional<double>(std::string_view)>;

  Expression() = default;  // the constant 0
  static Expression constant(double value);
  // At most 500 characters and 32 nested parentheses. InputError names `source` and `path` and the position.
  static Expression parse(std::string_view text, const std::string& source, const std::string& path);

  // InputError when a name is not known or a division is by zero. Comparisons give 1 or 0.
  double value(const Names& names) const;
  const std::string& text() const { return text_; }

 private:
  friend class ExpressionParser;
  enum class Step : uint8_t {
    number,
    name,
    add,
    subtract,
    multiply,
    divide,
    least,
    most,
    round_up,
    less,
    less_or_equal,
    equal,
    both,
    either,
    negate
  };
  struct Item {
    Step step = Step::number;
    double number = 0;
    std::string name;
  };
  [[noreturn]] void fail(const std::string& value, const std::string& expected) const;

  std::string text_ = "0";
  std::string source_, path_;
  std::vector<Item> items_;  // postfix
};

}  // namespace foretoken
