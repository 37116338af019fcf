// Any body that the page's server is sent becomes words for the program alone, or is refused with what was expected.
#include <algorithm>

#include "app/page/page_flags.h"
#include "app/page/run_request.h"
#include "base/text.h"
#include "fuzz.h"

namespace foretoken::run_request_fuzz_test {

const Library& shipped() {
  static const Library library(FORETOKEN_SOURCE_DIR "/data");
  return library;
}

// A command of the page, and nothing but flags of the page behind it: no value has become a flag.
void check_words(const std::vector<std::string>& words) {
  const auto flags = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with("-"); });
  std::string name;
  for (auto word = words.begin(); word != flags; ++word) name += (name.empty() ? "" : " ") + *word;
  const auto commands = page_commands();
  const auto command =
      std::find_if(commands.begin(), commands.end(), [&](const PageCommand& one) { return one.name == name; });
  promise(command != commands.end(), "the command is one of the page's");
  for (auto word = flags; word != words.end(); ++word) {
    promise(word->starts_with("--"), "a word behind the command is a flag");
    std::string flag = word->substr(2, word->find('=') - 2);
    const bool is_known = std::any_of(command->flags.begin(), command->flags.end(), [&](const PageFlag& one) {
      return one.name == flag || flag == "no-" + std::string(one.name);
    });
    promise(is_known || flag == "device", "the flag is one of the page's");
  }
}

}  // namespace foretoken::run_request_fuzz_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const RunRequest request = read_run_request(as_text(data, size), shipped());
    promise(size <= most_body_bytes, "a long body is refused");
    promise(request.command_line.starts_with("foretoken "), "a person can type it");
    if (request.arguments.front() != "compare") return check_words(request.arguments);
    promise(request.arguments.size() == 3, "two questions are compared");
    for (size_t i = 1; i < 3; ++i) {
      const auto words = shell_words(request.arguments[i].substr(request.arguments[i].find('=') + 1));
      promise(words.has_value(), "quotes are closed");
      check_words(*words);
    }
  });
  return 0;
}
