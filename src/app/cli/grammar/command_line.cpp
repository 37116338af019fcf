#include "app/cli/grammar/command_line.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli/grammar/command.h"
#include "app/cli/grammar/help_layout.h"
#include "app/cli/grammar/known_names.h"
#include "app/cli/grammar/launch_text.h"
#include "app/cli/grammar/question.h"
#include "base/error.h"
#include "base/replace.h"
#include "base/secrets.h"
#include "base/text.h"
#include "report/parts/launch_line_report.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// The innermost (sub)command that was named on the line.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// "kernel" for `foretoken kernel`, "kernel gemm" for its subcommand; empty for the program itself.
std::string command_path(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string above = command_path(*app.get_parent());
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

size_t depth_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? 0 : 1 + depth_of(*app.get_parent());
}

std::string help_text(const CLI::App& app) {
  const std::string above = app.get_parent() == nullptr ? "" : "foretoken " + command_path(*app.get_parent());
  const std::string page = app.help(above.substr(0, above.find_last_not_of(' ') + 1));
  // Notes are laid out where they are declared.
  const size_t notes = app.get_footer().empty() ? page.size() : page.rfind(app.get_footer());
  std::string text;
  std::string flags = page.substr(0, notes);
  replace_all(flags, "{false}",
              "       ");  // the parser's mark of flags that switch off: their help stays in its column
  std::istringstream lines(flags);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() && text.ends_with("\n\n")) continue;
    line.erase(line.find_last_not_of(' ') + 1);
    text += wrap_lines(line + "\n", page_width(), line.starts_with(' ') ? 36 : 0);
  }
  return text + page.substr(notes);
}

// The parser's complaint in our own form: what was typed, what was expected, the nearest name.
InputError input_error(const CLI::App& root, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const CLI::App& app = innermost(root);
  std::vector<std::string> flags, names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* child : app.get_subcommands({})) names.push_back(child->get_name());

  const std::string path = command_path(app);
  const std::string command = path.empty() ? "foretoken" : "foretoken " + path;
  InputProblem problem{.source = command};
  const std::string help = fmt::format(" (see {} --help)", command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    // What the command does not know: a flag if there is one (its value is left over too), else the first word.
    const std::vector<std::string> extras = root.remaining(true);
    const auto flag =
        std::find_if(extras.begin(), extras.end(), [](const std::string& word) { return word.starts_with("-"); });
    const std::string typed = flag != extras.end() ? *flag : (extras.empty() ? "" : extras.front());
    problem.value = extras.empty() ? "" : shown_word(typed);
    if (typed.starts_with("-")) {
      problem.expected = "a flag of this command" + help;
      const std::string typed_flag = typed.substr(0, typed.find('='));
      problem.suggestion = flag_meant(typed_flag, flags);
    } else {
      problem.expected =
          names.empty() ? "no further argument" + help : fmt::format("one of {}", fmt::join(names, ", "));
      problem.suggestion = typed == "help" ? "--help" : name_meant(typed, names);
    }
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !names.empty()) {
    // No (known) subcommand: the word after this command's own name is what was meant to be one.
    const size_t own_words = depth_of(app);
    const bool names_one = arguments.size() > own_words && !arguments[own_words].starts_with("-");
    const std::string typed = names_one ? arguments[own_words] : "";
    problem.value = names_one ? shown_word(typed) : "";
    problem.expected = fmt::format("one of {}{}", fmt::join(names, ", "), help);
    problem.suggestion = typed == "help" ? "--help" : name_meant(typed, names);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    // "--launch-out: 1 required TEXT missing".
    const std::string what = error.what();
    const std::string flag = what.substr(0, what.find(':'));
    problem.expected = fmt::format("a value after {}{}", flag, help);
  } else {
    problem.value = error.what();
    problem.expected = "a complete command" + help;
  }
  return InputError(problem);
}

Json read_spec(const std::string& file) {
  if (file != "-") return read_json_file(file);
  const JsonLimits limits;
  std::string text;
  std::vector<char> piece(1 << 16);
  while (text.size() <= limits.max_bytes) {
    std::cin.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (std::cin.gcount() == 0) break;
    text.append(piece.data(), static_cast<size_t>(std::cin.gcount()));
  }
  return parse_json(text, "standard input", limits);
}

struct Declared {
  const CLI::App* app = nullptr;
  std::unique_ptr<Options> options;
  std::unique_ptr<Command> command;
};

// The program's commands and flags, and after parse() what was chosen of them.
class ParsedLine {
 public:
  // `library`: where a launch line must know its model; null = the library of this process.
  explicit ParsedLine(std::vector<std::string> arguments, const Library* library = nullptr)
      : arguments_(std::move(arguments)), library_(library) {
    app_.set_version_flag("--version", "foretoken " FORETOKEN_VERSION);
    app_.set_help_flag("-h,--help", "Show the flags people use most");
    app_.set_help_all_flag("--help-all", "Show every flag");
    app_.footer(laid_out_notes(std::string(program_notes)));
    app_.get_formatter()->column_width(34);
    app_.require_subcommand(1);
    app_.add_flag("--json", as_json_, "Print one JSON document instead of text");
    app_.add_option("--spec", spec_file_, "Ask the question in this JSON file (- = standard input); flags override it")
        ->type_name("FILE");
    app_.add_option("--from", from_,
                    "Take the engine's flags from this launch line (vllm serve ..., sglang, trtllm-serve, docker run) "
                    "or YAML (Kubernetes, Dynamo, llm-d), as text or @FILE; flags override it")
        ->type_name("TEXT");
    app_.add_flag("--print-spec", print_spec_, "Print the question as JSON, for --spec, instead of answering it");
    take_command_from_spec();
    for (const CommandKind& kind : all_commands()) {
      CLI::App* child = app_.add_subcommand(std::string(kind.name), std::string(kind.summary));
      child->fallthrough();
      // Declaring the flags of all commands takes longer than most answers; only a command that is named needs its own.
      if (!names(kind.name)) continue;
      declared_.push_back({.app = child, .options = std::make_unique<Options>(*child), .command = kind.make()});
      declared_.back().command->declare(*declared_.back().options);
      declared_.back().options->set_line(shown_line());
    }
  }

  // What to print instead of an answer: help, the version or the question. InputError for a line that says nothing
  // sensible.
  std::optional<std::string> parse() {
    std::vector<std::string> reversed =
        with_library_flags(arguments_, [&](const std::string& flag) { return has_flag(app_, flag); });
    std::reverse(reversed.begin(), reversed.end());  // the parser takes them from the back
    if (reversed.empty()) return std::string(first_questions);
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      const size_t hidden = hide_rare();
      const CLI::App& app = innermost(app_);
      const std::string text = help_text(app);
      if (hidden == 0) return text;
      return text + fmt::format("\n{} more flags: foretoken {} --help-all\n", hidden, command_path(app));
    } catch (const CLI::CallForAllHelp&) {
      return help_text(innermost(app_));
    } catch (const CLI::CallForVersion& version) {
      return std::string(version.what()) + "\n";
    } catch (const CLI::ParseError& error) {
      throw input_error(app_, error, arguments_);
    }
    for (const Declared& candidate : declared_) {
      if (candidate.app->parsed()) question_.emplace(*candidate.command, *candidate.options);
    }
    ensure(question_.has_value(), "the parser requires a command");
    if (spec_file_) {
      question_->fill(spec_ ? std::move(*spec_) : read_spec(*spec_file_),
                      *spec_file_ == "-" ? "standard input" : *spec_file_);
    }
    if (from_) fill_from_launch_line();
    if (!print_spec_) return std::nullopt;
    question_->check_required();
    return without_passwords(question_->spec().dump()) + "\n";
  }

  Answer answer(const Library& library) const {
    if (launched_) check_checkpoint_format(library);
    Answer answer = question_->answer(library);
    if (launched_) {
      answer.text += "\n" + with_flag_names(launch_line_text(*launched_));
      Json read = launch_line_json(*launched_);
      name_flags(read);
      answer.json.set("launch_line", std::move(read));
    }
    return answer;
  }
  const Question& question() const { return *question_; }
  bool as_json() const { return as_json_; }

 private:
  bool names(std::string_view word) const {
    return std::find(arguments_.begin(), arguments_.end(), word) != arguments_.end();
  }

  // A command that is named on the line has the flag.
  bool has_flag(const CLI::App& app, const std::string& flag) const {
    if (app.get_option_no_throw(flag) != nullptr) return true;
    const auto children = app.get_subcommands([](const CLI::App*) { return true; });
    return std::any_of(children.begin(), children.end(),
                       [&](const CLI::App* child) { return names(child->get_name()) && has_flag(*child, flag); });
  }

  // The command stands before its own flags and after the program's; further on, a command's name is some flag's value
  // (--phase train).
  bool begins_with_command() const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const std::string_view word = arguments_[i];
      if (!word.starts_with('-') || word == "-") {
        const auto commands = all_commands();
        return std::any_of(commands.begin(), commands.end(),
                           [&](const CommandKind& kind) { return kind.name == word; });
      }
      const std::string_view flag = word.substr(0, word.find('='));
      const CLI::Option* const option = app_.get_option_no_throw(std::string(flag));
      if (option == nullptr) return false;
      if (flag == word && option->get_items_expected_max() > 0) ++i;  // and its value
    }
    return false;
  }

  // A line with a question's file needs no command: the file names it.
  void take_command_from_spec() {
    if (begins_with_command()) return;
    constexpr std::string_view flag = "--spec", with_value = "--spec=";
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const bool is_joined = arguments_[i].starts_with(with_value);
      if (!is_joined && (arguments_[i] != flag || i + 1 == arguments_.size())) continue;
      const std::string file = is_joined ? arguments_[i].substr(with_value.size()) : arguments_[i + 1];
      spec_ = read_spec(file);
      const std::string command = JsonView(*spec_, file == "-" ? "standard input" : file).at("command").string();
      const std::vector<std::string_view> words = split_words(command, " ");
      arguments_.insert(arguments_.begin(), words.begin(), words.end());
      return;
    }
  }

  std::string shown_line() const {
    std::vector<std::string> words;
    for (const std::string& word : arguments_) words.push_back(without_passwords(word));
    return "foretoken " + shell_text(words);
  }

  // Of the command that was named last.
  size_t hide_rare() {
    for (const Declared& candidate : declared_) {
      if (!candidate.app->parsed()) continue;
      Options* options = candidate.options.get();
      for (bool inside = true; inside;) {
        inside = false;
        for (const std::unique_ptr<Options>& child : options->subcommands()) {
          if (!child->was_chosen()) continue;
          options = child.get();
          inside = true;
          break;
        }
      }
      return options->hide_rare();
    }
    return 0;
  }

  // Engines do not start with a format that the checkpoint must have and has not.
  void check_checkpoint_format(const Library& library) const {
    const std::string& flag = launched_->line.remarks.checkpoint_format;
    const Json spec = question_->spec();
    const Json* model = spec.find("model");
    if (flag.empty() || model == nullptr || model->kind() != Json::Kind::string) return;
    if (spec.find("quantization") != nullptr) return;
    if (library.models().model(model->string()).is_quantized()) return;
    throw InputError(
        {.source = "--from",
         .path = flag,
         .value = model->string() + " is not quantized",
         .expected = "a checkpoint in this format: name the quantized checkpoint, for example one whose name ends in "
                     "-AWQ, or simulate the format with foretoken's own --quantization (int4_wo for AWQ and GPTQ)"});
  }

  // Of the model that was typed, else of the one in the launch line.
  std::optional<int64_t> experts_of(const std::string& model) const {
    const Json typed = question_->spec();
    const Json* name = typed.find("model");
    const bool is_typed = name != nullptr && name->kind() == Json::Kind::string;
    std::optional<Library> opened;
    const Library& library = library_ != nullptr ? *library_ : opened.emplace(Library::open());
    return experts_of_models(library)(is_typed ? name->string() : model);
  }

  void fill_from_launch_line() {
    if (spec_file_) {
      throw InputError({.source = "--from",
                        .value = "with --spec",
                        .expected = "one of them: --from with --print-spec writes a question for --spec"});
    }
    launched_ = LaunchedQuestion{
        .line = read_launch_text("--from", *from_, [&](const std::string& model) { return experts_of(model); }),
        .unused = {}};
    Json spec = Json::object({{"command", question_->command_name()}});
    for (const auto& [field, value] : launched_->line.fields.members()) {
      // A search takes several: engines in place of engine.
      const std::string several = field + "s";
      if (question_->has_field(field)) {
        spec.set(field, value);
      } else if (question_->has_field(several)) {
        spec.set(several, value);
      } else {
        launched_->unused.push_back(field);
      }
    }
    if (spec.members().size() == 1) {
      throw InputError({.source = "--from",
                        .value = "with foretoken " + question_->command_name(),
                        .expected = "a command about an engine: serve, endpoint, step, plan serve"});
    }
    question_->fill(std::move(spec), "--from");
  }

  std::vector<std::string> arguments_;
  const Library* library_;
  CLI::App app_{std::string(program_about), "foretoken"};
  std::vector<Declared> declared_;
  std::optional<Question> question_;
  std::optional<std::string> spec_file_, from_;
  std::optional<Json> spec_;  // read to learn the command
  std::optional<LaunchedQuestion> launched_;
  bool as_json_ = false, print_spec_ = false;
};

void print(const Answer& answer, bool as_json, std::ostream& out) {
  if (!as_json) out << answer.text;
  if (as_json && answer.json.kind() != Json::Kind::null) out << answer.json.dump() << "\n";
  out.flush();
  if (!out) throw std::runtime_error("the answer could not be written to standard output");
}

int parse_and_run(const std::vector<std::string>& arguments, std::ostream& out) {
  ParsedLine line(arguments);
  if (const auto instead = line.parse()) {
    out << *instead;
    return 0;
  }
  const Answer answer = line.answer(Library::open());
  print(answer, line.as_json(), out);
  return answer.exit_status;
}

}  // namespace

Answer answer_command(const std::vector<std::string>& arguments, const Library& library) {
  ParsedLine line(arguments, &library);
  if (const auto instead = line.parse()) return {.text = *instead, .json = Json::object({{"help", *instead}})};
  return line.answer(library);
}

Json spec_of_line(const std::vector<std::string>& arguments) {
  ParsedLine line(arguments);
  if (line.parse()) throw InputError({.source = "foretoken", .expected = "a command that answers a question"});
  return line.question().spec();
}

CommandDeclaration declaration_of(const CommandKind& kind) {
  CLI::App app{std::string(kind.summary), std::string(kind.name)};
  Options options(app);
  const std::unique_ptr<Command> command = kind.make();
  command->declare(options);
  return options.declaration();
}

int run_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  constexpr int wrong_input = 2, defect = 1;
  try {
    return parse_and_run(arguments, out);
  } catch (const InputError& error) {
    err << "error: " << without_passwords(error.what()) << '\n';
    return wrong_input;
  } catch (const std::runtime_error& error) {
    // The outside world: a full disk, a closed pipe.
    err << "error: " << without_passwords(error.what()) << '\n';
    return defect;
  } catch (const std::bad_alloc&) {
    err << "error: not enough memory for this input\n";
    return wrong_input;
  } catch (const std::exception& error) {
    err << "foretoken has a defect: " << error.what() << "\n  Please report it with the command that led here.\n";
    return defect;
  }
}

}  // namespace foretoken
