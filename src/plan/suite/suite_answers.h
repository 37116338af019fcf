// What a tool answered: to scenarios of the suite, and to measured cases that no card asks for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/json.h"
#include "plan/suite/suite_card.h"

namespace foretoken {

// What the tool had not seen of a case when it answered.
enum class Withheld { hardware, model, workload, time };
inline constexpr Withheld all_withheld[] = {Withheld::hardware, Withheld::model, Withheld::workload, Withheld::time};
std::string_view withheld_name(Withheld kind);

struct SuiteAnswer {
  std::string id;  // of a card, or the name of a measured case
  double value = 0;
  std::optional<double> low = std::nullopt, high = std::nullopt;  // 90% interval, where the tool states one
  // Of measured cases; cards have their own.
  SuiteLevel level = SuiteLevel::system;
  std::string group = {};                     // cases of one unit that are ranked together
  std::optional<double> size = std::nullopt;  // place in a row of sizes inside the group
  std::optional<double> measured = std::nullopt;
  std::vector<Withheld> withheld = {};
  std::string part_of = {};  // the case whose time this one is a part of
  std::string source = {};
};

// What the command of the card said, as withheld if the card's own measurement was not known before. InputError where
// its document has no such number.
SuiteAnswer suite_answer(const SuiteCard& card, const Json& document);
// What the command of its check at place `at` said, as a case with its measurement.
SuiteAnswer suite_check_answer(const SuiteCard& card, size_t at, const Json& document);

// Percent by which a prediction is above what was measured.
double suite_error(double predicted, double measured);

struct SuiteAnswers {
  std::vector<SuiteAnswer> answers;
  size_t unanswered = 0;  // rows without a value: the tool cannot answer them
};

// CSV with `scenario` and `value`, and perhaps `low`, `high`, `level`, `group`, `size`, `measured`, `withheld`,
// `part_of` and `source`. A row that is no card must have `level`, `group` and `measured`. InputError with the place.
SuiteAnswers read_suite_answers(const std::filesystem::path& path, const std::vector<SuiteCard>& cards);
SuiteAnswers read_suite_answers(CsvReader& reader, const std::vector<SuiteCard>& cards);
std::string suite_answers_csv(const std::vector<SuiteAnswer>& answers);  // to be read again

}  // namespace foretoken
