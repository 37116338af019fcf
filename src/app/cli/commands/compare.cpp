#include <algorithm>

#include <fmt/format.h>

#include "app/cli/command_line.h"
#include "app/cli/commands/list.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/comparison.h"

namespace foretoken {
namespace {

class CompareCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--first", first_, "A foretoken command in quotes: step, train or serve with its flags", true);
    options.text("--second", second_,
                 "The other one. What does not begin with a command's name are flags that replace those of the first",
                 true);
    options.text("--html", html_, "Write the comparison as one page");
    options.footer(
        "Examples:\n"
        "  foretoken compare --first 'step --model Llama-3.1-8B --device h100_sxm --batch 32 --context-len 2048'\n"
        "      --second '--device a100_sxm'\n"
        "  foretoken compare --first 'serve --model Llama-3.1-8B --device h100_sxm --request-rate 8 --num-prompts "
        "200'\n"
        "      --second '--quantization fp8'");
  }

  Answer run(const Library& library) const override {
    const std::vector<std::string> first = words_of("--first", first_);
    const std::string& command = first.front();
    std::vector<std::string> second = words_of("--second", second_);
    if (second.front().starts_with("-")) second = replaced(first, second);
    check_command("--first", first);
    check_command("--second", second);
    if (second.front() != command) {
      throw InputError({.source = "--second", .value = second.front(), .expected = "the same command: " + command});
    }
    Comparison comparison = compare_answers(command, answer_of(first, library), answer_of(second, library));
    comparison.first_command = line_of(first);
    comparison.second_command = line_of(second);
    Answer answer{.text = comparison_text(comparison), .json = comparison_json(comparison)};
    if (!html_.empty()) {
      write_file(html_, comparison_html(comparison));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

 private:
  static void check_command(const std::string& flag, const std::vector<std::string>& words) {
    const std::vector<std::string> known = comparable_commands();
    if (std::find(known.begin(), known.end(), words.front()) != known.end()) return;
    throw InputError({.source = flag,
                      .value = printable(words.front()),
                      .expected = fmt::format("a command: {}", fmt::join(known, ", ")),
                      .suggestion = nearest_name(words.front(), known).value_or("")});
  }

  static std::vector<std::string> words_of(const std::string& flag, const std::string& text) {
    const auto words = shell_words(text);
    if (!words || words->empty()) {
      throw InputError(
          {.source = flag, .value = printable(text), .expected = "a command with its flags, quotes closed"});
    }
    std::vector<std::string> result = *words;
    if (result.front() == "foretoken" && result.size() > 1) result.erase(result.begin());
    return result;
  }

  // The first command with these flags in place of its own of the same names.
  static std::vector<std::string> replaced(std::vector<std::string> words, const std::vector<std::string>& flags) {
    for (size_t i = 0; i < flags.size(); ++i) {
      if (!flags[i].starts_with("-")) continue;
      const auto found = std::find(words.begin(), words.end(), flags[i]);
      if (found == words.end()) continue;
      const bool has_value = found + 1 != words.end() && !(found + 1)->starts_with("--");
      words.erase(found, found + (has_value ? 2 : 1));
    }
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }

  static Json answer_of(std::vector<std::string> words, const Library& library) {
    if (words.front() == "serve") {
      // Where the time goes is known only of steps of our own kernels.
      std::vector<std::string> with_parts = words;
      with_parts.emplace_back("--breakdown");
      try {
        return answer_command(with_parts, library).json;
      } catch (const InputError&) {
        return answer_command(words, library).json;
      }
    }
    return answer_command(words, library).json;
  }

  static std::string line_of(const std::vector<std::string>& words) {
    std::string line = "foretoken";
    for (const std::string& word : words) line += " " + shell_word(word);
    return line;
  }

  std::string first_, second_, html_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<CompareCommand>();
}

}  // namespace foretoken
