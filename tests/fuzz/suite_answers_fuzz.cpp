// Any bytes are either answers of a tool, which have a score, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "plan/suite/suite_score.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  static const std::vector<SuiteCard> cards = {
      {.id = "T1.1", .measured = MeasuredFigure{.value = 2}, .scaling = ScalingPlace{.family = "a", .size = 8}},
      {.id = "T1.2", .measured = MeasuredFigure{.value = 5}, .scaling = ScalingPlace{.family = "a", .size = 16}}};
  try {
    CsvReader table = CsvReader::from_text(std::string(as_text(data, size)), "input");
    const SuiteAnswers read = read_suite_answers(table, cards);
    const SuiteScore score = score_answers(cards, read.answers, {});
    promise(score.total >= 0 && score.total <= 100, "a total is a share of 100");
    promise(score.answered <= score.scenarios, "no more is answered than was asked");
  } catch (const InputError&) {  // expected for most bytes
  }
  return 0;
}
