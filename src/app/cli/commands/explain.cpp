#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "base/error.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

struct Term {
  std::vector<std::string> names;  // the first is the usual one
  std::string text, see;
};

std::vector<Term> read_glossary(const Library& library) {
  const std::filesystem::path file = library.directory() / "glossary.json";
  const Json json = read_json_file(file);
  const JsonView view(json, file.string());
  view.allow_only({"format", "terms"});
  std::vector<Term> terms;
  for (const JsonView& one : view.at("terms").items()) {
    one.allow_only({"names", "text", "see"});
    Term term{.names = {}, .text = one.at("text").string()};
    for (const JsonView& name : one.at("names").items()) term.names.push_back(name.string());
    if (one.has("see")) term.see = one.at("see").string();
    terms.push_back(std::move(term));
  }
  return terms;
}

std::string text_of(const Term& term) {
  std::string text = term.names.front();
  if (term.names.size() > 1) {
    text += fmt::format(" ({})", fmt::join(term.names.begin() + 1, term.names.end(), ", "));
  }
  text += "\n" + wrap_lines("  " + term.text, page_width(), 2);
  if (!term.see.empty()) text += wrap_lines("  See: " + term.see, page_width(), 4);
  return text;
}

Json json_of(const Term& term) {
  Json names = Json::array();
  for (const std::string& name : term.names) names.push(name);
  return Json::object({{"names", std::move(names)}, {"text", term.text}, {"see", term.see}});
}

class ExplainCommand : public Command {
 public:
  void declare(Options& options) override {
    options.list("term", term_, "A word of foretoken's answers; without it, all of them");
    options.footer(
        "Examples:\n"
        "  foretoken explain ttft\n"
        "  foretoken explain kv cache\n"
        "  foretoken explain");
  }

  Answer run(const Library& library) const override {
    const std::vector<Term> terms = read_glossary(library);
    std::vector<std::string> names;
    Answer answer{.text = {}, .json = Json::object()};
    Json found = Json::array();
    const std::string wanted = lower_case(fmt::format("{}", fmt::join(term_, " ")));
    for (const Term& term : terms) {
      const bool is_it = std::any_of(term.names.begin(), term.names.end(),
                                     [&](const std::string& name) { return lower_case(name) == wanted; });
      for (const std::string& name : term.names) names.push_back(lower_case(name));
      if (!is_it && !wanted.empty()) continue;
      answer.text += (answer.text.empty() ? "" : "\n") + text_of(term);
      found.push(json_of(term));
    }
    if (found.items().empty()) {
      throw InputError({.source = "foretoken explain",
                        .value = printable(wanted),
                        .expected = "a term of the glossary (foretoken explain lists them)",
                        .suggestion = nearest_name(wanted, names).value_or("")});
    }
    answer.json.set("terms", std::move(found));
    return answer;
  }

 private:
  std::vector<std::string> term_;
};

}  // namespace

std::unique_ptr<Command> make_explain() {
  return std::make_unique<ExplainCommand>();
}

}  // namespace foretoken
