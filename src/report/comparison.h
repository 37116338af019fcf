// Two answers of one command side by side: what changed, and which parts of the time made the difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/range.h"

namespace foretoken {

struct ComparedNumber {
  std::string name, unit;
  double first = 0, second = 0;
  std::optional<Range<double>> first_interval = {}, second_interval = {};  // 90%, where the answers have them
};

struct ComparedText {
  std::string name, first, second;
};

struct Comparison {
  std::string first_command, second_command;
  std::string first_failure, second_failure;  // why a side fits or serves nothing; empty where it does
  std::vector<ComparedText> settings;         // flags in which the commands differ
  std::vector<ComparedText> outcomes;         // what the answers say in words, as the layout a search chose
  std::vector<ComparedNumber> headlines;      // those that both have
  std::string parts_of;                       // what the parts are parts of: "step", "mean TPOT"
  std::vector<ComparedNumber> parts;          // seconds; largest difference first
  std::vector<std::string> notes;             // on devices of either
  double parts_difference() const;
  std::string failure() const;  // of either side or both; empty where both are fine
};

// Commands that can be compared.
std::vector<std::string> comparable_commands();

// Whose answer a document is; nothing where it is none of theirs.
std::optional<std::string> command_of_answer(const Json& document);

// Documents of that command. Parts that only one has count as zero in the other.
Comparison compare_answers(const std::string& command, const Json& first, const Json& second);

std::string comparison_text(const Comparison& comparison);
Json comparison_json(const Comparison& comparison);
std::string comparison_html(const Comparison& comparison);

}  // namespace foretoken
