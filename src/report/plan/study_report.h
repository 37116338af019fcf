// A study for people and for programs: a row for each case, what is best for each model and traffic, and why not.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/study/study_file.h"

namespace foretoken {

// What a table says of a case. `answer` is that of `plan serve`; `command` asks it alone.
Json study_row(const StudyCase& asked, const Json& answer, const std::string& command);
// Of a case whose question makes no sense, as where no engine runs on the device.
Json refused_study_row(const StudyCase& asked, const std::string& reason, const std::string& command);

struct StudyReport {
  const Study& study;
  Json rows;  // an array: one of each case, in their order
};

std::string study_sentence(const StudyReport& report);
std::string study_text(const StudyReport& report);
Json study_json(const StudyReport& report);
std::string study_csv(const StudyReport& report);
std::string study_html(const StudyReport& report, const std::string& command);
// The cases with their commands, none of them answered.
std::string study_list_text(const Study& study, const std::vector<std::string>& commands);
bool any_case_serves(const StudyReport& report);
bool is_all_refused(const StudyReport& report);

}  // namespace foretoken
