#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/question.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "base/text.h"
#include "report/comparison.h"

namespace foretoken {
namespace {

// One of the two questions.
struct ComparedSide {
  std::vector<std::string> words;  // "plan", "serve"
  Json fields = Json::object();

  explicit ComparedSide(const Json& spec) {
    for (const auto& [name, value] : spec.members()) {
      if (name != "command") fields.set(name, value);
    }
    for (const std::string_view word : split_words(spec.find("command")->string(), " ")) words.emplace_back(word);
  }
  Question question() const { return Question(words, fields); }
};

bool names_file(const std::string& text) {
  return text.ends_with(".json") && text.find(' ') == std::string::npos;
}

// What --json printed before, which is compared as it stands; nothing where the text is a question.
struct SavedAnswer {
  std::string command;
  Json answer;

  static std::optional<SavedAnswer> read(const std::string& text) {
    if (!names_file(text)) return std::nullopt;
    Json json = read_json_file(text);
    const std::optional<std::string> command = command_of_answer(json);
    if (!command) return std::nullopt;
    return SavedAnswer{.command = *command, .answer = std::move(json)};
  }
};

class CompareCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--first", first_,
                 "First command, in quotes: step, train, serve or plan serve with its flags; or its question as JSON "
                 "text or a .json file (see --print-spec); or a .json file with its answer (see --json)",
                 true);
    options.text(
        "--second", second_,
        "Second command, question or answer. You may give only the flags that differ from the first command, for "
        "example '--device a100_sxm'",
        true);
    options.text("--html", html_, "Write the comparison as an HTML report");
    options.footer(
        "Examples:\n"
        "  foretoken compare --first 'step --model Llama-3.1-8B --device h100_sxm --batch 32 --context-len 2048'\n"
        "      --second '--device a100_sxm'\n"
        "  foretoken compare --first 'serve --model Llama-3.1-8B --device h100_sxm --request-rate 8 --num-prompts "
        "200'\n"
        "      --second '--quantization fp8'\n"
        "  foretoken compare --first monday.json --second friday.json");
  }

  Answer run(const Library& library) const override {
    const std::optional<SavedAnswer> first_saved = SavedAnswer::read(first_), second_saved = SavedAnswer::read(second_);
    const Json first_spec = first_saved ? named(*first_saved) : spec_of("--first", first_, nullptr);
    if (first_saved && !second_saved && second_.starts_with('-')) {
      throw InputError({.source = "--second",
                        .value = printable(second_),
                        .expected = fmt::format("a whole command or another saved answer: {} is a saved answer, and "
                                                "a saved answer does not contain its flags",
                                                first_)});
    }
    const Json second_spec =
        second_saved ? named(*second_saved) : spec_of("--second", second_, first_saved ? nullptr : &first_spec);
    const std::string command = first_spec.find("command")->string();
    if (const std::string& other = second_spec.find("command")->string(); other != command) {
      throw InputError({.source = "--second", .value = other, .expected = "the same command: " + command});
    }
    const ComparedSide first(first_spec), second(second_spec);
    Comparison comparison = compare_answers(command, first_saved ? first_saved->answer : answer_of(first, library),
                                            second_saved ? second_saved->answer : answer_of(second, library));
    comparison.first_command = first_saved ? "the answer in " + first_ : first.question().line();
    comparison.second_command = second_saved ? "the answer in " + second_ : second.question().line();
    if (!first_saved && !second_saved) comparison.settings = differing_settings(first.fields, second.fields);
    Answer answer{
        .text = comparison_text(comparison), .json = comparison_json(comparison), .failure = comparison.failure()};
    if (!html_.empty()) {
      write_report(html_, comparison_html(comparison));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

 private:
  // As if it were a question without flags.
  static Json named(const SavedAnswer& saved) { return Json::object({{"command", saved.command}}); }

  // `base`: what flags without a command are added to; nothing where there is none.
  static Json spec_of(const std::string& flag, const std::string& text, const Json* base) {
    const bool is_file = names_file(text);
    if (is_file || text.starts_with('{')) {
      const std::string source = is_file ? text : flag;
      const Json spec = is_file ? read_json_file(text) : parse_json(text, source);
      check_command(source, JsonView(spec, source).at("command").string());
      return Question(spec, source).spec();
    }
    std::vector<std::string> words = words_of(flag, text);
    if (base == nullptr || !words.front().starts_with("-")) {
      check_command(flag, command_name(words));
      return spec_of_line(words);
    }
    std::vector<std::string> line = ComparedSide(*base).words;
    line.insert(line.end(), words.begin(), words.end());
    return changed(*base, spec_of_line(line));
  }

  static void check_command(const std::string& source, const std::string& name) {
    const std::vector<std::string> known = comparable_commands();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    throw InputError({.source = source,
                      .value = printable(name),
                      .expected = fmt::format("a command: {}", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }

  // The words before the first flag: "plan serve".
  static std::string command_name(const std::vector<std::string>& words) {
    const auto end =
        std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("-"); });
    return fmt::format("{}", fmt::join(words.begin(), end, " "));
  }

  static std::vector<std::string> words_of(const std::string& flag, const std::string& text) {
    const auto words = shell_words(text);
    if (!words || words->empty()) {
      throw InputError(
          {.source = flag, .value = printable(text), .expected = "a command with its flags, with all quotes closed"});
    }
    std::vector<std::string> result = *words;
    if (result.front() == "foretoken" && result.size() > 1) result.erase(result.begin());
    return result;
  }

  // The first question with these fields in place of its own of the same names.
  static Json changed(const Json& base, const Json& fields) {
    Json result = Json::object();
    for (const auto& [name, value] : base.members()) {
      if (name == "command" || fields.find(name) == nullptr) result.set(name, value);
    }
    for (const auto& [name, value] : fields.members()) result.set(name, value);
    return result;
  }

  static std::string value_text(const Json* value) {
    if (value == nullptr) return "not given";
    switch (value->kind()) {
      case Json::Kind::boolean:
        return value->boolean() ? "yes" : "no";
      case Json::Kind::string:
        return shortened(value->string());
      case Json::Kind::array: {
        std::vector<std::string> items;
        for (const Json& item : value->items()) items.push_back(value_text(&item));
        return fmt::format("{}", fmt::join(items, ", "));
      }
      default:
        return shortened(value->dump(0));
    }
  }

  static std::vector<ComparedText> differing_settings(const Json& first, const Json& second) {
    std::vector<ComparedText> all;
    for (const Json* fields : {&first, &second}) {
      for (const auto& [name, value] : fields->members()) {
        const std::string flag = flag_name(name);
        const bool known = std::any_of(all.begin(), all.end(), [&](const auto& text) { return text.name == flag; });
        if (!known) all.push_back({flag, value_text(first.find(name)), value_text(second.find(name))});
      }
    }
    std::erase_if(all, [](const ComparedText& text) { return text.first == text.second; });
    return all;
  }

  // A device may be written out in place of its name.
  static std::string shortened(const std::string& value) {
    constexpr size_t longest = 60;
    return value.size() <= longest ? value : value.substr(0, longest) + "...";
  }

  static Json answer_of(const ComparedSide& side, const Library& library) {
    if (side.words.front() == "serve") {
      // Where the time goes is known only of steps of our own kernels.
      ComparedSide with_parts = side;
      with_parts.fields.set("breakdown", true);
      try {
        return with_parts.question().answer(library).json;
      } catch (const InputError&) {
        return side.question().answer(library).json;
      }
    }
    return side.question().answer(library).json;
  }

  std::string first_, second_, html_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<CompareCommand>();
}

}  // namespace foretoken
