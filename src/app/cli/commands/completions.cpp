#include <array>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/grammar/completion.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, 3> shells = {"bash", "zsh", "fish"};

class CompletionsCommand : public Command {
 public:
  void declare(Options& options) override {
    for (size_t s = 0; s < shells.size(); ++s) {
      const std::string shell(shells[s]);
      scripts_[s] = &options.subcommand(shell, fmt::format("Print the script that completes foretoken in {}", shell));
    }
    words_ = &options.subcommand("words", "Print the words that may come next (used by the scripts)");
    words_->text("--typed", typed_,
                 "Everything after the program's name, starting with a space, up to the word being typed");
    options.footer(
        "Examples:\n"
        "  source <(foretoken completions bash)\n"
        "  foretoken completions fish > ~/.config/fish/completions/foretoken.fish");
  }

  Answer run(const Library& library) const override {
    for (size_t s = 0; s < shells.size(); ++s) {
      if (!scripts_[s]->was_chosen()) continue;
      const std::string_view script = completion_script(shells[s]);
      return {.text = std::string(script), .json = Json::object({{"shell", shells[s]}, {"script", script}})};
    }
    ensure(words_->was_chosen(), "the parser requires a subcommand");
    return next_words(library);
  }

 private:
  Answer next_words(const Library& library) const {
    std::vector<std::string> words;
    for (size_t begin = 0; begin <= typed_.size();) {
      const size_t end = std::min(typed_.find(' ', begin), typed_.size());
      const bool is_last = end == typed_.size();
      if (end > begin || is_last) words.push_back(typed_.substr(begin, end - begin));
      begin = end + 1;
    }
    Answer answer{.text = "", .json = Json::object()};
    Json listed = Json::array();
    for (const Completion& completion : complete_words(words, library)) {
      answer.text += fmt::format("{}\t{}\n", completion.word, completion.about);
      listed.push(Json::object({{"word", completion.word}, {"about", completion.about}}));
    }
    answer.json.set("words", std::move(listed));
    return answer;
  }

  std::array<const Options*, shells.size()> scripts_ = {};
  Options* words_ = nullptr;
  std::string typed_;
};

}  // namespace

std::unique_ptr<Command> make_completions() {
  return std::make_unique<CompletionsCommand>();
}

}  // namespace foretoken
