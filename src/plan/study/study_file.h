// A study: every combination of models, hardware, traffic and engines as a question of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

struct StudyCase {
  std::string model, hardware, traffic, engines;  // as people call them
  Json question;                                  // fields of `plan serve`, with the lines of the file they stand on
};

struct Study {
  std::string title;
  std::vector<StudyCase> cases;  // models first, then hardware, traffic and engines
};

inline constexpr size_t most_study_cases = 10'000;

// `source` names the text in errors. InputError with line and path for a text that is not a study.
Study parse_study(std::string_view text, const std::string& source);

}  // namespace foretoken
