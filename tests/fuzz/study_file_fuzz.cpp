// Any bytes are either a study whose cases are questions, or an InputError.
#include "fuzz.h"
#include "plan/study/study_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const Study study = parse_study(as_text(data, size), "input");
    promise(!study.cases.empty() && study.cases.size() <= most_study_cases, "a study has cases, not too many");
    for (const StudyCase& one : study.cases) {
      promise(one.question.find("model") != nullptr && one.question.find("hardware") != nullptr, "a question is whole");
      promise(one.question.find("store") == nullptr, "a study keeps its own files");
    }
  });
  return 0;
}
