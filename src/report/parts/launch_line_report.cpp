#include "report/parts/launch_line_report.h"

#include <utility>

#include <fmt/format.h>

#include "base/field_braces.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

Json words_json(const std::vector<std::string>& words) {
  Json list = Json::array();
  for (const std::string& word : words) list.push(word);
  return list;
}

Json typed_words_json(const std::vector<std::string>& words) {
  Json list = Json::array();
  for (const std::string& word : words) list.push(with_literal_braces(word));
  return list;
}

}  // namespace

std::string launch_line_text(const LaunchedQuestion& launched) {
  std::string read;
  for (const auto& [field, value] : launched.line.fields.members()) {
    const std::string text = value.kind() == Json::Kind::string ? value.string() : value.dump(0);
    read += fmt::format("{}{} {}", read.empty() ? "" : ", ", field, with_literal_braces(text));
  }
  std::string text = wrap_lines(fmt::format("read from the launch line: {}\n", read), page_width(), 2);
  const auto add = [&](const char* what, const std::vector<std::string>& words) {
    if (words.empty()) return;
    text += wrap_lines(fmt::format("{}: {}\n", what, with_literal_braces(fmt::format("{}", fmt::join(words, ", ")))),
                       page_width(), 2);
  };
  const LaunchRemarks& remarks = launched.line.remarks;
  add("without effect on the answer", remarks.without_effect);
  add("not simulated, although it may affect speed or memory", remarks.not_simulated);
  add("not used by this command", launched.unused);
  add("unknown flags, ignored (check their spelling)", remarks.unknown);
  for (const std::string& note : remarks.notes) text += wrap_lines("note: " + note + "\n", page_width(), 2);
  return text;
}

Json launch_line_json(const LaunchedQuestion& launched) {
  const LaunchRemarks& remarks = launched.line.remarks;
  Json fields = launched.line.fields;
  fields.change_texts([](std::string& text) { text = with_literal_braces(text); });
  return Json::object({{"fields", std::move(fields)},
                       {"without_effect", typed_words_json(remarks.without_effect)},
                       {"not_simulated", typed_words_json(remarks.not_simulated)},
                       {"not_used", typed_words_json(launched.unused)},
                       {"unknown", typed_words_json(remarks.unknown)},
                       {"notes", words_json(remarks.notes)}});
}

}  // namespace foretoken
