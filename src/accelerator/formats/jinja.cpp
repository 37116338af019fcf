#include "accelerator/formats/jinja.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "base/yaml_json.h"

namespace foretoken {
namespace {

constexpr size_t most_file_bytes = size_t{4} << 20;
constexpr size_t most_expanded_bytes = size_t{8} << 20;
constexpr int deepest_include = 16;
constexpr int most_includes = 1000;
constexpr int deepest_expression = 32;
constexpr size_t deepest_condition = 32;
constexpr size_t most_matches = 1000;
constexpr int one_line = 0;  // of Json::dump

using Value = std::optional<std::string>;  // nothing = not defined

bool is_true(const Value& value) {
  return value && !value->empty() && *value != "0" && lower_case(*value) != "false" && lower_case(*value) != "none";
}

bool is_name_letter(char letter) {
  return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z');
}

// `*` stands for any letters. What stands between two stars is best taken as early as it comes, so nothing is tried
// twice.
bool matches(std::string_view name, std::string_view pattern) {
  const std::vector<std::string_view> parts = split(pattern, "*");
  if (parts.size() == 1) return name == pattern;
  if (!name.starts_with(parts.front())) return false;
  name.remove_prefix(parts.front().size());
  for (size_t part = 1; part + 1 < parts.size(); ++part) {
    const size_t found = name.find(parts[part]);
    if (found == std::string_view::npos) return false;
    name.remove_prefix(found + parts[part].size());
  }
  return name.ends_with(parts.back());
}

// What all files of one expansion share.
struct Expansion {
  JinjaVariables variables;
  std::vector<std::filesystem::path> folders;  // of add_to_path
  size_t expanded_bytes = 0;                   // of texts and of variables
  int includes = 0;
};

class JinjaText {
 public:
  // `folder` is that of the file; null where the text came from none.
  JinjaText(Expansion& shared, std::string_view text, std::string source, const std::filesystem::path* folder,
            int depth)
      : shared_(shared), text_(text), source_(std::move(source)), folder_(folder), depth_(depth) {}

  std::string expand() {
    std::string result;
    size_t at = 0;
    while (at < text_.size()) {
      const size_t open = next_mark(at);
      if (is_live()) add(result, text_.substr(at, open - at));
      if (open >= text_.size()) break;
      const char kind = text_[open + 1];
      const std::string_view closing = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
      const size_t close = text_.find(closing, open + 2);
      tag_ = open;
      if (close == std::string_view::npos) fail(std::string(text_.substr(open, 2)), fmt::format("its `{}`", closing));
      code_ = trimmed_code(text_.substr(open + 2, close - open - 2));
      at_ = 0;
      if (kind == '%') {
        run_statement();
      } else if (kind == '{' && is_live()) {
        add(result, printed());
      }
      at = close + 2;
    }
    if (!conditions_.empty()) fail("{% if", "its {% endif %}");
    return result;
  }

 private:
  struct Condition {
    bool live = false;   // this branch is taken
    bool taken = false;  // this branch or one before it
  };

  size_t next_mark(size_t from) const {
    for (size_t at = text_.find('{', from); at != std::string_view::npos; at = text_.find('{', at + 1)) {
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) return at;
    }
    return text_.size();
  }

  // Without the dashes that trim white space, which means nothing between lines of YAML.
  static std::string_view trimmed_code(std::string_view code) {
    if (code.starts_with('-')) code.remove_prefix(1);
    if (code.ends_with('-')) code.remove_suffix(1);
    const size_t first = code.find_first_not_of(" \t\n");
    if (first == std::string_view::npos) return {};
    return code.substr(first, code.find_last_not_of(" \t\n") - first + 1);
  }

  bool is_live() const {
    return std::all_of(conditions_.begin(), conditions_.end(), [](const Condition& own) { return own.live; });
  }

  void count_expanded(size_t bytes) {
    shared_.expanded_bytes += bytes;
    if (shared_.expanded_bytes > most_expanded_bytes) {
      fail("{{ }}", fmt::format("at most {} bytes when expanded", most_expanded_bytes));
    }
  }

  void add(std::string& result, std::string_view more) {
    count_expanded(more.size());
    result += more;
  }

  [[noreturn]] void fail(const std::string& value, const std::string& expected) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(tag_), '\n');
    throw InputError(
        {.source = source_, .line = static_cast<int>(line), .value = printable(value), .expected = expected});
  }

  void run_statement() {
    const std::string word = name();
    if (word == "if") {
      if (conditions_.size() == deepest_condition)
        fail("if", fmt::format("at most {} inside each other", deepest_condition));
      const bool live = is_live() && is_true(condition());
      conditions_.push_back({.live = live, .taken = live});
    } else if (word == "elif" || word == "else") {
      if (conditions_.empty()) fail(word, "an {% if %} before it");
      Condition& own = conditions_.back();
      const bool taken = own.taken;
      own.live = true;  // for is_live() to look at those outside
      const bool live = !taken && is_live() && (word == "else" || is_true(condition()));
      own = {.live = live, .taken = taken || live};
    } else if (word == "endif") {
      if (conditions_.empty()) fail(word, "an {% if %} before it");
      conditions_.pop_back();
    } else if (word == "set") {
      if (!is_live()) return;
      const std::string variable = name();
      if (variable.empty() || !taken("=")) fail(std::string(code_), "{% set NAME = VALUE %}");
      const Value value = condition();
      if (!value) return;
      count_expanded(value->size());  // a ~ a doubles it
      shared_.variables.insert_or_assign(variable, *value);
    } else {
      fail(std::string(code_), "set, if, elif, else or endif: other Jinja statements are not supported");
    }
  }

  std::string printed() {
    const std::string shown(code_);
    const Value value = condition();
    if (!value) fail(shown, "a Jinja variable that has a value, or `| default(VALUE)`");
    return *value;
  }

  // A whole expression: nothing may follow.
  Value condition() {
    Value value = compared();
    skip_spaces();
    if (at_ < code_.size()) {
      fail(std::string(code_), fmt::format("an expression that ends before `{}`", code_.substr(at_)));
    }
    return value;
  }

  Value compared() {
    skip_spaces();
    const size_t start = at_;
    if (name() == "not") {
      enter_expression();
      const bool is_not = !is_true(compared());
      --nesting_;
      return truth(is_not);
    }
    at_ = start;
    Value left = joined();
    if (taken("==")) return truth(left == joined());
    if (taken("!=")) return truth(left != joined());
    return left;
  }

  void enter_expression() {
    if (++nesting_ > deepest_expression) fail(std::string(code_), "a shorter expression");
  }

  static Value truth(bool value) { return value ? "True" : "False"; }

  Value joined() {
    enter_expression();
    Value value = filtered();
    while (taken("~")) {
      const Value more = filtered();
      if (!value || !more) fail(std::string(code_), "Jinja variables that have values on both sides of `~`");
      if (value->size() + more->size() > most_expanded_bytes) {
        fail(std::string(code_), fmt::format("texts of at most {} bytes", most_expanded_bytes));
      }
      *value += *more;
    }
    --nesting_;
    return value;
  }

  Value filtered() {
    Value value = primary();
    while (taken("|")) {
      const std::string filter = name();
      if (filter != "default" && filter != "d") fail(filter, "the filter default: others are not supported");
      const std::vector<Value> given = arguments();
      if (given.size() != 1) fail(filter, "default(VALUE)");
      if (!value) value = given.front();
    }
    return value;
  }

  Value primary() {
    skip_spaces();
    if (at_ >= code_.size()) fail(std::string(code_), "an expression");
    const char first = code_[at_];
    if (first == '\'' || first == '"') {
      const size_t end = code_.find(first, at_ + 1);
      if (end == std::string_view::npos) fail(std::string(code_), "a closing quote");
      std::string text(code_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return text;
    }
    if (first == '(') {
      ++at_;
      Value value = joined();
      if (!taken(")")) fail(std::string(code_), "`)`");
      return value;
    }
    if ((first >= '0' && first <= '9') || first == '-' || first == '.') {
      const size_t start = at_++;
      while (at_ < code_.size() && (is_name_letter(code_[at_]) || code_[at_] == '.')) ++at_;
      return std::string(code_.substr(start, at_ - start));
    }
    const std::string word = name();
    if (word.empty()) fail(std::string(code_), "a variable, a text in quotes or a function");
    if (word == "True" || word == "true") return "True";
    if (word == "False" || word == "false") return "False";
    skip_spaces();
    if (at_ < code_.size() && code_[at_] == '(') return called(word, arguments());
    const auto found = shared_.variables.find(word);
    if (found == shared_.variables.end()) return std::nullopt;
    return found->second;
  }

  std::vector<Value> arguments() {
    std::vector<Value> values;
    if (!taken("(")) fail(std::string(code_), "`(`");
    if (taken(")")) return values;
    do {
      values.push_back(joined());
    } while (taken(","));
    if (!taken(")")) fail(std::string(code_), "`)`");
    return values;
  }

  Value called(const std::string& function, const std::vector<Value>& given) {
    const auto text = [&](size_t index) -> const std::string& {
      if (index >= given.size() || !given[index]) {
        fail(std::string(code_), fmt::format("a value for argument {} of {}", index + 1, function));
      }
      return *given[index];
    };
    if (folder_ == nullptr) fail(function, "text without functions: this one is of no file");
    if (function == "cwd") return folder_->string();
    if (function == "add_to_path") {
      shared_.folders.push_back(*folder_ / text(0));
      return "";
    }
    if (function == "path_exists") return truth(!find(text(0)).empty());
    if (function == "find_path") return existing(text(0)).string();
    if (function == "include_text") return expanded_file(existing(text(0)));
    if (function == "include") return section(existing(text(0)), text(1)).dump(one_line);
    if (function == "include_all") return all_sections(text(0), text(1)).dump(one_line);
    fail(function,
         "include, include_text, include_all, add_to_path, find_path, path_exists or cwd: other functions are not "
         "supported");
  }

  std::filesystem::path find(const std::string& name) const {
    std::vector<std::filesystem::path> folders = {*folder_};
    folders.insert(folders.end(), shared_.folders.begin(), shared_.folders.end());
    std::error_code error;
    for (const std::filesystem::path& folder : folders) {
      if (std::filesystem::is_regular_file(folder / name, error)) return folder / name;
    }
    return {};
  }

  std::filesystem::path existing(const std::string& name) const {
    std::filesystem::path found = find(name);
    if (found.empty()) fail(name, "a file beside this one, or in a folder of add_to_path");
    return found;
  }

  std::string expanded_file(const std::filesystem::path& path) {
    if (depth_ == deepest_include)
      fail(path.string(), fmt::format("files that include at most {} others in turn", depth_));
    if (++shared_.includes > most_includes)
      fail(path.string(), fmt::format("at most {} included files", most_includes));
    const std::string text = read_file(path, most_file_bytes);
    const std::filesystem::path folder = path.parent_path();
    return JinjaText(shared_, text, path.string(), &folder, depth_ + 1).expand();
  }

  Json section(const std::filesystem::path& path, const std::string& key) {
    const Json document = json_of_yaml(parse_yaml(expanded_file(path), path.string()), path.string());
    JsonView view(document, path.string());
    for (const std::string_view part : split_words(key, ".")) view = view.at(part);
    return view.value();
  }

  Json all_sections(const std::string& pattern, const std::string& key) {
    std::vector<std::filesystem::path> found;
    const std::filesystem::path asked(pattern);
    std::vector<std::filesystem::path> folders = {*folder_};
    folders.insert(folders.end(), shared_.folders.begin(), shared_.folders.end());
    for (const std::filesystem::path& folder : folders) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(folder / asked.parent_path(), error)) {
        if (found.size() == most_matches) fail(pattern, fmt::format("at most {} files", most_matches));
        if (matches(entry.path().filename().string(), asked.filename().string())) found.push_back(entry.path());
      }
      if (!found.empty()) break;
    }
    std::sort(found.begin(), found.end());
    Json all = Json::array();
    for (const std::filesystem::path& path : found) {
      const Json own = section(path, key);
      if (own.kind() != Json::Kind::array) fail(path.string(), fmt::format("a list under {}", key));
      for (const Json& item : own.items()) all.push(item);
    }
    return all;
  }

  std::string name() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < code_.size() && is_name_letter(code_[at_])) ++at_;
    return std::string(code_.substr(start, at_ - start));
  }

  bool taken(std::string_view mark) {
    skip_spaces();
    if (!code_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }

  void skip_spaces() {
    while (at_ < code_.size() && (code_[at_] == ' ' || code_[at_] == '\t' || code_[at_] == '\n')) ++at_;
  }

  Expansion& shared_;
  std::string_view text_;
  std::string source_;
  const std::filesystem::path* folder_;
  int depth_;
  std::vector<Condition> conditions_;
  size_t tag_ = 0;         // where the tag in hand begins
  std::string_view code_;  // inside it
  size_t at_ = 0;          // in the code
  int nesting_ = 0;
};

}  // namespace

bool has_jinja(std::string_view text) {
  return text.find("{{") != std::string_view::npos || text.find("{%") != std::string_view::npos;
}

JinjaVariables jinja_variables(std::span<const std::string> assignments) {
  JinjaVariables variables;
  for (const std::string& assignment : assignments) {
    const size_t sign = assignment.find('=');
    if (sign == 0 || sign == std::string::npos) {
      throw InputError({.source = "jinja", .value = printable(assignment), .expected = "NAME=VALUE"});
    }
    variables.insert_or_assign(assignment.substr(0, sign), assignment.substr(sign + 1));
  }
  return variables;
}

std::string expand_jinja_file(const std::filesystem::path& path, const JinjaVariables& variables) {
  Expansion shared{.variables = variables};
  const std::string text = read_file(path, most_file_bytes);
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  return JinjaText(shared, text, path.string(), &folder, 0).expand();
}

std::string expand_jinja(std::string_view text, const std::string& source, const JinjaVariables& variables) {
  Expansion shared{.variables = variables};
  return JinjaText(shared, text, source, nullptr, 0).expand();
}

}  // namespace foretoken
