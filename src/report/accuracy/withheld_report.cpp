#include "report/accuracy/withheld_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/accuracy/validation_report.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

const ErrorSummary* errors_of(const Validation& validation, const std::string& group) {
  const auto found = std::find_if(validation.groups.begin(), validation.groups.end(),
                                  [&](const ValidationGroup& one) { return one.name == group; });
  return found == validation.groups.end() ? nullptr : &found->errors;
}

void add_errors(std::vector<std::string>& cells, const ErrorSummary* errors) {
  if (errors == nullptr || errors->n == 0) {
    cells.insert(cells.end(), 3, "-");
    return;
  }
  cells.push_back(fmt::format("{:.1f}", errors->mape));
  cells.push_back(fmt::format("{:.1f}", errors->median_ape));
  cells.push_back(fmt::format("{:.1f}", errors->coverage90));
}

}  // namespace

std::string withheld_text(const WithheldValidation& table) {
  if (table.cross.overall.n == 0) return validation_text(table.cross);
  Table lines({{"group", Table::Align::left},
               {"n"},
               {"sheet: mape %"},
               {"p50 %"},
               {"cover90"},
               {"sweep: mape %"},
               {"p50 %"},
               {"cover90"}});
  const auto add = [&](const std::string& name, const ErrorSummary& cross, const ErrorSummary* measured) {
    std::vector<std::string> cells{name, fmt::format("{}", cross.n)};
    add_errors(cells, &cross);
    add_errors(cells, measured);
    lines.add(cells);
  };
  for (const ValidationGroup& group : table.cross.groups)
    add(group.name, group.errors, errors_of(table.measured, group.name));
  lines.add_rule();
  add("all", table.cross.overall, &table.measured.overall);
  std::string text = lines.text();
  text += wrap_lines(
      fmt::format(
          "sheet: predicted from the spec sheets of {} and kernels of other generations. sweep: kernels swept on "
          "these GPUs as well{}.",
          table.generation,
          table.layer == "kernels" ? ", in four fifths of the rows; the other fifth is scored, in both" : ""),
      page_width(), 0);
  for (const std::string& note : table.cross.notes) text += wrap_lines("note: " + note, page_width(), 2);
  if (!table.cross.skipped.empty()) text += counted(table.cross.skipped.size(), "row") + " skipped\n";
  return text;
}

Json withheld_json(const WithheldValidation& table) {
  return Json::object({{"layer", table.layer},
                       {"without", table.generation},
                       {"cross", validation_json(table.cross, table.layer)},
                       {"measured", validation_json(table.measured, table.layer)}});
}

}  // namespace foretoken
