// Any body that the page's server is sent becomes a question with fields of the page alone, or is refused with what was
// expected.
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

// A command of the page, and nothing but fields of the page.
void check_fields(std::string_view name, const Json& fields) {
  const auto commands = page_commands();
  const auto command =
      std::find_if(commands.begin(), commands.end(), [&](const PageCommand& one) { return one.name == name; });
  promise(command != commands.end(), "the command is one of the page's");
  for (const auto& [field, value] : fields.members()) {
    const bool is_known =
        std::any_of(command->flags.begin(), command->flags.end(),
                    [&field = field](const PageFlag& one) { return one.name == field || field == "command"; });
    promise(is_known, "the field is one of the page's");
  }
}

}  // namespace foretoken::run_request_fuzz_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  using namespace foretoken::run_request_fuzz_test;
  read_or_refuse([&] {
    const RunRequest request = read_run_request(as_text(data, size), shipped());
    promise(size <= most_body_bytes, "a long body is refused");
    if (request.words.front() == "compare") {
      promise(request.fields.members().size() == 2, "two questions are compared");
      for (const auto& [side, spec] : request.fields.members()) check_fields(spec.find("command")->string(), spec);
    } else {
      std::string name;
      for (const std::string& word : request.words) name += (name.empty() ? "" : " ") + word;
      check_fields(name, request.fields);
    }
    const std::string line = request.command_line();  // refuses values that the command refuses
    promise(line.starts_with("foretoken "), "a person can type it");
    promise(shell_words(line).has_value(), "quotes are closed");
  });
  return 0;
}
