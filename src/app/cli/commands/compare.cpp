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
    options.text("--first", first_, "A foretoken command in quotes: step, train, serve or plan serve with its flags",
                 true);
    options.text(
        "--second", second_,
        "Second command. You may give only the flags that differ from the first, for example '--device a100_sxm'",
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
    std::vector<std::string> second = words_of("--second", second_);
    if (second.front().starts_with("-")) second = replaced(first, second);
    const std::string command = checked_command("--first", first);
    if (const std::string other = checked_command("--second", second); other != command) {
      throw InputError({.source = "--second", .value = other, .expected = "the same command: " + command});
    }
    Comparison comparison = compare_answers(command, answer_of(first, library), answer_of(second, library));
    comparison.first_command = line_of(first);
    comparison.second_command = line_of(second);
    comparison.settings = differing_settings(first, second);
    Answer answer{
        .text = comparison_text(comparison), .json = comparison_json(comparison), .failure = comparison.failure()};
    if (!html_.empty()) {
      write_file(html_, comparison_html(comparison));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

 private:
  // The words before the first flag: "plan serve".
  static std::string checked_command(const std::string& flag, const std::vector<std::string>& words) {
    const auto* end = std::find_if(words.data(), words.data() + words.size(),
                                   [](const std::string& word) { return word.starts_with("-"); });
    std::string name = fmt::format("{}", fmt::join(words.data(), end, " "));
    const std::vector<std::string> known = comparable_commands();
    if (std::find(known.begin(), known.end(), name) != known.end()) return name;
    throw InputError({.source = flag,
                      .value = printable(name),
                      .expected = fmt::format("a command: {}", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
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

  struct Setting {
    std::string name, value;    // a switch has no value
    size_t begin = 0, end = 0;  // of its words
  };

  // "--batch 8" and "--batch=8"; a switch stands alone.
  static std::vector<Setting> settings_of(const std::vector<std::string>& words) {
    std::vector<Setting> all;
    for (size_t i = 0; i < words.size();) {
      const size_t begin = i++;
      if (!words[begin].starts_with("-")) continue;
      const size_t equals = words[begin].find('=');
      Setting one{.name = words[begin].substr(0, equals)};
      if (equals != std::string::npos) {
        one.value = words[begin].substr(equals + 1);
      } else if (i < words.size() && !words[i].starts_with("--")) {
        one.value = words[i++];
      }
      one.begin = begin;
      one.end = i;
      all.push_back(std::move(one));
    }
    return all;
  }

  // The first command with these flags in place of its own of the same names.
  static std::vector<std::string> replaced(std::vector<std::string> words, const std::vector<std::string>& flags) {
    std::vector<Setting> own = settings_of(words);
    const std::vector<Setting> others = settings_of(flags);
    std::reverse(own.begin(), own.end());  // so that places of those before stay
    for (const Setting& one : own) {
      const auto same = [&](const Setting& other) { return other.name == one.name; };
      if (std::none_of(others.begin(), others.end(), same)) continue;
      words.erase(words.begin() + static_cast<ptrdiff_t>(one.begin), words.begin() + static_cast<ptrdiff_t>(one.end));
    }
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }

  static std::vector<ComparedText> differing_settings(const std::vector<std::string>& first,
                                                      const std::vector<std::string>& second) {
    const std::vector<Setting> before = settings_of(first), after = settings_of(second);
    // What a flag says, all its uses together.
    const auto value_in = [](const std::vector<Setting>& settings, const std::string& name) {
      std::vector<std::string> values;
      for (const Setting& one : settings) {
        if (one.name == name) values.push_back(one.value.empty() ? "yes" : shortened(one.value));
      }
      return values.empty() ? std::string("not given") : fmt::format("{}", fmt::join(values, ", "));
    };
    std::vector<ComparedText> all;
    for (const std::vector<Setting>* settings : {&before, &after}) {
      for (const Setting& one : *settings) {
        const bool known = std::any_of(all.begin(), all.end(), [&](const auto& text) { return text.name == one.name; });
        if (!known) all.push_back({one.name, value_in(before, one.name), value_in(after, one.name)});
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
