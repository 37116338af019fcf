#include "app/cli/grammar/question.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli/grammar/field_value.h"
#include "app/cli/grammar/known_names.h"
#include "base/error.h"
#include "base/secrets.h"
#include "base/text.h"
#include "library/deployment.h"

namespace foretoken {
namespace {

constexpr const char* command_key = "command";

void choose_levels(Options& options, std::vector<Options*>& levels) {
  levels.push_back(&options);
  for (const std::unique_ptr<Options>& child : options.subcommands()) {
    if (child->was_chosen()) choose_levels(*child, levels);
  }
}

// A text that is a number or an object, as such.
Json structured(Json value) {
  const std::string& text = value.string();
  const std::optional<double> number = parse_number(text);
  if (number && number_text(*number) == text) {
    const std::optional<int64_t> whole = exact_integer(*number);
    return whole ? Json(*whole) : Json(*number);
  }
  if (!text.starts_with('{')) return value;
  try {
    return parse_json(text, "");
  } catch (const InputError&) {
    return value;
  }
}

// The name of the flag that stands on the line, of several: --slo for --goodput. Empty where none does.
std::string typed_name(const FlagDeclaration& flag, const std::string& line) {
  const std::optional<std::vector<std::string>> words = shell_words(line);
  if (!words) return "";
  for (const std::string& word : *words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--")) continue;
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return name;
  }
  return "";
}

[[noreturn]] void fail_word(const std::string& command, const std::string& word,
                            const std::vector<std::string>& names) {
  const std::string program = command.empty() ? "foretoken" : "foretoken " + command;
  throw InputError({.source = program,
                    .value = shown_word(word),
                    .expected = names.empty()
                                    ? fmt::format("no further argument (see {} --help)", program)
                                    : fmt::format("one of {} (see {} --help)", fmt::join(names, ", "), program),
                    .suggestion = nearest_name(word, names).value_or("")});
}

}  // namespace

struct Question::Declared {
  explicit Declared(const CommandKind& kind)
      : app(std::string(kind.summary), std::string(kind.name)), options(app), command(kind.make()) {
    command->declare(options);
    options.choose();
  }
  CLI::App app;
  Options options;
  std::unique_ptr<Command> command;
};

Question::Question(Json spec, std::string source) : source_(std::move(source)), naming_(Naming::fields) {
  const JsonView command = JsonView(spec, source_).at(command_key);
  const std::string named_command = command.string();
  std::vector<std::string> words;
  for (const std::string_view word : split_words(named_command, " ")) words.emplace_back(word);
  try {
    const size_t named = choose(words);
    if (named < words.size()) fail_subcommand(words[named]);
  } catch (const InputError& error) {
    command.fail(error.problem().expected, error.problem().suggestion);
  }
  given_ = std::move(spec);
  fill_fields();
}

Question::Question(const std::vector<std::string>& words, const Json& fields) {
  size_t next = choose(words);
  for (Options* level : levels_) {
    for (const OptionField& field : level->fields()) {
      if (!field.declaration.is_positional() || next == words.size()) continue;
      Json value = words[next++];
      if (field.declaration.kind == FlagKind::list) {
        value = Json::array({value});
        while (next < words.size()) value.push(words[next++]);
      }
      given_.set(field_name(field.declaration.names.front()), std::move(value));
    }
  }
  if (next < words.size()) fail_subcommand(words[next]);
  for (const auto& [name, value] : fields.members()) given_.set(name, value);
  fill_fields();
}

Question::Question(const Command& command, Options& options) : command_(&command) {
  choose_levels(options, levels_);
}

Question::Question(Question&&) noexcept = default;
Question::~Question() = default;

void Question::check_command(const std::vector<std::string>& words) {
  if (words.empty()) return;
  Question question;
  const size_t named = question.choose_named(words);
  if (named < words.size()) question.fail_subcommand(words[named]);
}

size_t Question::choose(const std::vector<std::string>& words) {
  const size_t next = choose_named(words);
  if (levels_.back()->needs_subcommand()) fail_subcommand(next < words.size() ? words[next] : "");
  return next;
}

size_t Question::choose_named(const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words.front();
  std::vector<std::string> names;
  for (const CommandKind& kind : all_commands()) {
    names.emplace_back(kind.name);
    if (kind.name != first) continue;
    declared_ = std::make_unique<Declared>(kind);
    command_ = declared_->command.get();
    levels_ = {&declared_->options};
  }
  if (declared_ == nullptr) fail_word("", first, names);
  size_t next = 1;
  while (next < words.size()) {
    const auto children = levels_.back()->subcommands();
    const auto chosen =
        std::find_if(children.begin(), children.end(), [&](const auto& child) { return child->name() == words[next]; });
    if (chosen == children.end()) break;
    (*chosen)->choose();
    levels_.push_back(chosen->get());
    ++next;
  }
  return next;
}

void Question::fail_subcommand(const std::string& word) const {
  std::vector<std::string> names;
  for (const auto& child : levels_.back()->subcommands()) names.push_back(child->name());
  fail_word(command_name(), word, names);
}

void Question::fill(Json spec, std::string source) {
  source_ = std::move(source);
  naming_ = Naming::fields;
  const JsonView view(spec, source_);
  if (const auto command = view.find(command_key); command && command->string() != command_name()) {
    command->fail(fmt::format("{}, as on the command line", command_name()));
  }
  given_ = std::move(spec);
  fill_fields();
}

OptionField* Question::find_field(const std::string& name) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    for (OptionField& field : (*level)->fields()) {
      const std::vector<std::string>& names = field.declaration.names;
      if (std::any_of(names.begin(), names.end(), [&](const auto& flag) { return field_name(flag) == name; })) {
        return &field;
      }
    }
  }
  return nullptr;
}

void Question::fail_unknown(const std::string& name, const JsonView& value) const {
  const bool by_field = naming_ == Naming::fields;
  std::vector<std::string> known;
  for (Options* level : levels_) {
    for (const OptionField& field : level->fields()) {
      for (const std::string& flag : field.declaration.names) known.push_back(by_field ? field_name(flag) : flag);
    }
  }
  if (by_field) {
    value.fail(fmt::format("a field of {0} (see foretoken schema {0})", command_name()),
               nearest_name(name, known).value_or(""));
  }
  const std::string flag = flag_name(name);
  throw InputError({.source = "foretoken " + command_name(),
                    .value = printable(flag),
                    .expected = fmt::format("a flag of this command (see foretoken {} --help)", command_name()),
                    .suggestion = flag_meant(flag, known)});
}

void Question::fill_fields() {
  std::set<const OptionField*> seen;
  for (const auto& [name, value] : JsonView(given_, source_).members()) {
    if (naming_ == Naming::fields && name == command_key) continue;
    OptionField* field = find_field(name);
    if (field == nullptr) fail_unknown(name, value);
    if (value.is(Json::Kind::null)) continue;
    const FlagDeclaration& flag = field->declaration;
    try {
      if (!seen.insert(field).second) {
        value.fail(fmt::format("{} only once: this is another name for it", field_name(flag.names.front())));
      }
      const std::vector<std::string> texts = field_texts(flag, value);
      if (field->was_typed()) continue;
      for (const std::string& text : texts) field->take(text);
      const Json held = field->value();
      const bool is_empty_list = held.kind() == Json::Kind::array && held.items().empty();
      field->filled = !texts.empty() && !is_empty_list;
    } catch (const InputError& error) {
      if (naming_ == Naming::fields) throw named(error);
      InputProblem problem = error.problem();
      problem.source = flag.names.front();
      problem.path.clear();
      throw InputError(std::move(problem));
    }
  }
  levels_.front()->set_line(line());
}

// What the user knows a field by: its flag on a command line.
std::string Question::shown_name(std::string_view field) const {
  const OptionField* declared = find_field(std::string(field));
  const bool by_flag = naming_ == Naming::flags || (declared != nullptr && declared->was_typed());
  const bool is_word = declared != nullptr && declared->declaration.is_positional();
  if (!by_flag || is_word) return std::string(field);
  const std::string typed = declared == nullptr ? "" : typed_name(declared->declaration, levels_.front()->line());
  return typed.empty() ? flag_name(field) : typed;
}

// What is said of a field, said of the flag, and the other way round; a flag that was typed keeps its name.
InputError Question::named(const InputError& error) const {
  InputProblem problem = error.problem();
  for (std::string* sentence : {&problem.value, &problem.expected, &problem.suggestion}) {
    *sentence = with_field_names(*sentence, [&](std::string_view field) { return shown_name(field); });
  }
  // Catalogues say "model: nope" of names wherever they stand: here it is what this very flag was given.
  if (problem.field.empty() && problem.path.empty()) {
    const OptionField* const same = find_field(problem.source);
    const Json held = same != nullptr && same->was_given() ? same->value() : Json();
    if (held.kind() == Json::Kind::string && printable(held.string()) == problem.value) problem.field = problem.source;
  }
  const std::string source = problem.field.empty() ? problem.source : problem.field;
  if (!problem.field.empty()) problem.source = shown_name(std::exchange(problem.field, ""));
  if (naming_ == Naming::flags) return InputError(std::move(problem));
  for (const Options* level : levels_) {
    for (const OptionField& field : level->fields()) {
      const FlagDeclaration& flag = field.declaration;
      const bool is_it = std::any_of(flag.names.begin(), flag.names.end(), [&](const std::string& name) {
        return source == name || source == field_name(name);
      });
      if (is_it && !field.was_typed()) return of_field(flag, std::move(problem));
    }
  }
  return InputError(std::move(problem));
}

InputError Question::of_field(const FlagDeclaration& flag, InputProblem problem) const {
  std::string path = field_name(flag.names.front());
  for (const std::string& name : flag.names) {
    const Json* value = given_.find(field_name(name));
    if (value == nullptr) continue;
    path = field_name(name);
    problem.line = value->line();
  }
  if (!problem.path.empty()) path += "." + (flag.takes_settings ? field_name(problem.path) : problem.path);
  problem.path = std::move(path);
  problem.source = source_;
  return InputError(std::move(problem));
}

void Question::check_required() const {
  try {
    levels_.front()->check_required();
  } catch (const InputError& error) {
    throw named(error);
  }
}

Answer Question::answer(const Library& library) const {
  check_required();
  try {
    std::string calibration, deployment;
    for (const Options* level : levels_) {
      if (!level->calibration().empty()) calibration = level->calibration();
      if (!level->deployment().empty()) deployment = level->deployment();
    }
    Library asked = calibration.empty() ? library : library.with_calibrations(calibration);
    if (!deployment.empty()) asked = asked.with_deployment(read_deployment(deployment));
    Answer answer = command_->run(asked);
    if (!answer.failure.empty()) {
      answer.exit_status = answer_is_no;
      answer.json.set("failure", answer.failure);
    }
    // The same answer to the same question, however it was asked.
    answer.text = with_flag_names(answer.text);
    answer.failure = with_flag_names(answer.failure);
    name_flags(answer.json);
    return answer;
  } catch (const InputError& error) {
    throw named(error);
  }
}

std::string Question::command_name() const {
  std::string name;
  for (const Options* level : levels_) name += (name.empty() ? "" : " ") + level->name();
  return name;
}

Json Question::spec() const {
  Json spec = Json::object({{command_key, command_name()}});
  for (Options* level : levels_) {
    for (const OptionField& field : level->fields()) {
      if (!field.was_given()) continue;
      const std::vector<std::string>& names = field.declaration.names;
      Json value = field.declaration.kind == FlagKind::text ? structured(field.value()) : field.value();
      for (const std::string& name : names) {
        // Lists and objects stay as they were written.
        const Json* written = field.was_typed() ? nullptr : given_.find(field_name(name));
        const bool is_composed =
            written != nullptr && (written->kind() == Json::Kind::array || written->kind() == Json::Kind::object);
        if (is_composed) value = *written;
      }
      const bool is_empty_list = value.kind() == Json::Kind::array && value.items().empty();
      if (!is_empty_list) spec.set(field_name(names.front()), std::move(value));
    }
  }
  return spec;
}

std::vector<std::string> Question::words() const {
  std::vector<std::string> words;
  for (const Options* level : levels_) words.push_back(level->name());
  const auto add = [&](const FlagDeclaration& flag, const JsonView& value) {
    for (std::string& word : flag_words(flag, field_texts(flag, value))) words.push_back(std::move(word));
  };
  for (const auto& [name, value] : JsonView(given_, source_).members()) {
    const OptionField* field = find_field(name);
    if (field == nullptr || !field->filled) continue;  // the command, nulls, and what was typed instead
    if (!value.is(Json::Kind::null)) add(field->declaration, value);
  }
  for (Options* level : levels_) {
    for (const OptionField& field : level->fields()) {
      const Json value = field.value();
      if (field.was_typed()) add(field.declaration, JsonView(value, source_));
    }
  }
  return words;
}

std::string Question::line() const {
  std::vector<std::string> shown;
  for (const std::string& word : words()) shown.push_back(without_passwords(word));
  return "foretoken " + shell_text(shown);
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

}  // namespace foretoken
