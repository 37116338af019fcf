#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "app/cli/command_line.h"
#include "app/cli/commands/list.h"
#include "app/cli/kernel_source_flags.h"
#include "app/cli/progress.h"
#include "app/cli/shipped_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "plan/suite/suite_score.h"
#include "report/suite_report.h"

namespace foretoken {
namespace {

class SuiteCommand : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--list", list_, "List the scenarios and their commands without running them");
    options.list("--only", only_, "Scenarios to run, by id or the beginning of an id, for example T4,I5.1");
    options.text("--cards", cards_, "Folder of scenarios, instead of the shipped ones");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The answers do not depend on it");
    declare_calibration(options);
    options.heading("Scores");
    options.flag(
        "--mtap", mtap_,
        "Also score a tool in five dimensions: fidelity, composition, generalisation, deployment, extensibility");
    options.text("--answers", answers_,
                 "CSV file with another tool's answers to score instead of foretoken's: scenario, value and optionally "
                 "low and high, in the units of the cards");
    options.text("--tool", tool_, "Facts about that tool: a built-in name or a JSON file");
    options.heading("Output");
    options.text("--csv", csv_, "Write the answers to this CSV file, in the format that --answers reads");
    options.footer(
        "Every scenario is one foretoken command, shown by --list. Its status says what supports the "
        "answer:\nvalidated = measured rows of this kind are scored in docs/accuracy.md; layers = the layers it is "
        "composed of are;\nformula = neither.\nExamples:\n  foretoken suite\n  foretoken suite --only T4,I5 --json\n  "
        "foretoken suite --mtap\n  foretoken suite --mtap --answers other_tool.csv --tool other_tool.json");
  }

  Answer run(const Library& library) const override {
    const std::filesystem::path folder = library.directory() / "suite";
    std::vector<SuiteCard> cards = read_suite(cards_.empty() ? folder / "cards" : std::filesystem::path(cards_));
    for (SuiteCard& card : cards) fill_in(card, library);
    if (list_) return {.text = suite_list_text(cards), .json = suite_list_json(cards)};
    const bool others = !answers_.empty();
    if (others && !mtap_)
      throw InputError({.source = "--answers", .expected = "--mtap together with it, which scores the answers"});
    if (!others && !tool_.empty()) {
      throw InputError({.source = "--tool", .expected = "--answers together with it: a tool is scored by its answers"});
    }
    const std::vector<SuiteCard> chosen = others ? cards : chosen_of(cards);
    const std::vector<SuiteRun> runs = others ? given_runs(chosen) : run_all(chosen, library);
    Answer answer{.text = suite_text(chosen, runs), .json = suite_json(chosen, runs)};
    const auto failed = [](const SuiteRun& one) { return !one.error.empty(); };
    if (!others && std::any_of(runs.begin(), runs.end(), failed)) answer.exit_status = 1;
    if (!csv_.empty()) {
      write_file(csv_, suite_answers_csv(answers_of(runs)));
      answer.text += fmt::format("wrote {}\n", csv_);
    }
    if (mtap_) {
      const std::string tool = tool_.empty() && !others ? "foretoken" : tool_;
      ToolFacts facts{.name = "this tool", .source = "nothing is known besides its answers"};
      if (!tool.empty()) {
        const Json document = read_json_file(shipped_file("--tool", folder / "tools", tool, "facts about a tool"));
        facts = read_tool_facts(JsonView(document, tool));
      }
      const SuiteScore score = score_answers(chosen, answers_of(runs), facts);
      answer.text += "\n" + suite_score_text(score, facts);
      answer.json.set("mtap", suite_score_json(score, facts));
    }
    return answer;
  }

 private:
  // {data} in a card's command is the folder of the library.
  static void fill_in(SuiteCard& card, const Library& library) {
    constexpr std::string_view mark = "{data}";
    for (std::string& word : card.command) {
      if (word.starts_with(mark)) word = library.directory().string() + word.substr(mark.size());
    }
  }

  std::vector<SuiteCard> chosen_of(const std::vector<SuiteCard>& cards) const {
    if (only_.empty()) return cards;
    std::vector<SuiteCard> chosen;
    for (const std::string& wanted : only_) {
      const auto fits = [&](const SuiteCard& card) { return card.id.starts_with(wanted); };
      if (std::none_of(cards.begin(), cards.end(), fits)) {
        std::vector<std::string> names;
        for (const SuiteCard& card : cards) names.push_back(card.id);
        throw InputError({.source = "--only",
                          .value = printable(wanted),
                          .expected = "the id of a scenario (foretoken suite --list)",
                          .suggestion = nearest_name(wanted, names).value_or("")});
      }
    }
    for (const SuiteCard& card : cards) {
      const auto begins = [&](const std::string& wanted) { return card.id.starts_with(wanted); };
      if (std::any_of(only_.begin(), only_.end(), begins)) chosen.push_back(card);
    }
    return chosen;
  }

  static SuiteRun run_card(const SuiteCard& card, const Library& library) {
    const auto start = std::chrono::steady_clock::now();
    SuiteRun run{.answer = {.id = card.id}};
    try {
      run.answer = suite_answer(card, answer_command(card.command, library).json);
    } catch (const InputError& error) {
      run.error = error.what();
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
  }

  std::vector<SuiteRun> run_all(const std::vector<SuiteCard>& cards, const Library& library) const {
    std::vector<SuiteRun> runs(cards.size());
    std::atomic<size_t> next = 0;
    std::mutex progress;
    size_t done = 0;
    const unsigned threads =
        threads_ > 0 ? static_cast<unsigned>(threads_) : std::max(1U, std::thread::hardware_concurrency());
    run_on_threads(threads, [&] {
      for (size_t i = next++; i < cards.size(); i = next++) {
        runs[i] = run_card(cards[i], library);
        const std::lock_guard lock(progress);
        show_progress(fmt::format("{} of {} scenarios", ++done, cards.size()));
      }
    });
    return runs;
  }

  std::vector<SuiteRun> given_runs(const std::vector<SuiteCard>& cards) const {
    const std::vector<SuiteAnswer> given = read_suite_answers(answers_, cards);
    std::vector<SuiteRun> runs;
    for (const SuiteCard& card : cards) {
      const auto found =
          std::find_if(given.begin(), given.end(), [&](const SuiteAnswer& answer) { return answer.id == card.id; });
      SuiteRun run{.answer = {.id = card.id}, .error = "not answered"};
      if (found != given.end()) run = {.answer = *found};
      runs.push_back(std::move(run));
    }
    return runs;
  }

  static std::vector<SuiteAnswer> answers_of(const std::vector<SuiteRun>& runs) {
    std::vector<SuiteAnswer> answers;
    for (const SuiteRun& run : runs) {
      if (run.error.empty()) answers.push_back(run.answer);
    }
    return answers;
  }

  bool list_ = false, mtap_ = false;
  std::vector<std::string> only_;
  std::string cards_, answers_, tool_, csv_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_suite() {
  return std::make_unique<SuiteCommand>();
}

}  // namespace foretoken
