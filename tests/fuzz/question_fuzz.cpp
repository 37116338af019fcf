// Any question in JSON is read or refused; one that is read prints as a spec, and as a command line, that ask the same.
#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/question.h"
#include "fuzz.h"

namespace foretoken::question_fuzz_test {

// What a line cannot say: a name that begins with a dash would be read as a flag, an empty one as nothing.
bool has_plain_names(const Question& question) {
  const std::vector<std::string> words = question.words();
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i + 1].empty()) return false;
  }
  const Json spec = question.spec();
  for (const char* name : {"name", "subcommand", "trace"}) {
    const Json* value = spec.find(name);
    if (value != nullptr && value->dump().find('-') != std::string::npos) return false;
  }
  return true;
}

}  // namespace foretoken::question_fuzz_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  using namespace foretoken::question_fuzz_test;
  read_or_refuse([&] {
    const Question question(parse_json(as_text(data, size), "question"), "question");
    const std::string spec = question.spec().dump();
    promise(Question(parse_json(spec, "spec"), "spec").spec().dump() == spec, "a printed spec says the same");
    if (!has_plain_names(question)) return;
    const Question typed(spec_of_line(question.words()), "line");
    promise(Question(spec_of_line(typed.words()), "line").spec().dump() == typed.spec().dump(), "a line says the same");
  });
  return 0;
}
