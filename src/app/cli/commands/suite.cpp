#include <algorithm>
#include <chrono>
#include <mutex>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/shipped_file.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "plan/suite/suite_score.h"
#include "report/accuracy/suite_report.h"

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
    options.flag("--mtap", mtap_,
                 "Also score a tool in five dimensions, with a weighted total: fidelity 40%, composition 20%, "
                 "generalization 20%, deployment 10%, extensibility 10%");
    options.text("--answers", answers_,
                 "Answers of another tool to score instead of foretoken's: a shipped name, for example neusight, or a "
                 "CSV file with scenario and value and optionally low, high, level, group, size, measured, withheld, "
                 "part_of, source");
    options.text("--tool", tool_, "Facts about that tool: a shipped name or a JSON file");
    options.flag("--leaderboard", leaderboard_, "Compare foretoken with every tool whose answers ship");
    options.heading("Output");
    options.text("--csv", csv_, "Write the answers to this CSV file, in the format that --answers reads");
    options.text("--html", html_, "Write the leaderboard as an HTML page");
    options.footer(
        "Every scenario is one foretoken command, shown by --list. Its status says what supports the answer:\n" +
        std::string(suite_status_legend) +
        "\nExamples:\n  foretoken suite\n  foretoken suite --only T4,I5 --json\n  foretoken suite --mtap\n  "
        "foretoken suite --mtap --answers neusight\n  foretoken suite --mtap --answers other_tool.csv --tool "
        "other_tool.json\n  foretoken suite --leaderboard --html leaderboard.html");
  }

  Answer run(const Library& library) const override {
    const std::filesystem::path folder = library.directory() / "suite";
    std::vector<SuiteCard> cards = read_suite(cards_.empty() ? folder / "cards" : std::filesystem::path(cards_));
    for (SuiteCard& card : cards) fill_in(card, library);
    if (list_) return {.text = suite_list_text(cards), .json = suite_list_json(cards)};
    check_flags();
    if (leaderboard_) return leaderboard(folder, cards, library);
    const bool others = !answers_.empty();
    const std::vector<SuiteCard> chosen = others ? cards : chosen_of(cards);
    SuiteAnswers cases;  // that no card asks for
    const std::vector<SuiteRun> runs = others ? given_runs(chosen, folder, cases) : run_all(chosen, library);
    const Answerer answerer = others ? Answerer::other : Answerer::foretoken;
    Answer answer{.text = suite_text(chosen, runs, answerer), .json = suite_json(chosen, runs, answerer)};
    const auto failed = [](const SuiteRun& one) { return !one.error.empty(); };
    const auto any_failed = [&](const SuiteRun& one) {
      return failed(one) || std::any_of(one.checks.begin(), one.checks.end(), failed);
    };
    if (!others && std::any_of(runs.begin(), runs.end(), any_failed)) answer.exit_status = 1;
    if (!csv_.empty()) {
      write_file(csv_, suite_answers_csv(with_measurements(chosen, answers_of(chosen, runs))));
      answer.text += fmt::format("wrote {}\n", csv_);
    }
    if (mtap_) {
      if (!others) cases = own_cases(folder, cards);
      std::vector<SuiteAnswer> all = answers_of(chosen, runs);
      all.insert(all.end(), cases.answers.begin(), cases.answers.end());
      const ToolFacts facts = facts_of(folder, others ? tool_ : std::string(own_name));
      const SuiteScore score = score_answers(chosen, all, facts);
      answer.text = suite_score_text(score, facts) + "\n" + answer.text;  // what was asked for comes first
      answer.json.set("mtap", suite_score_json(score, facts));
    }
    return answer;
  }

 private:
  static constexpr std::string_view own_name = "foretoken";

  void check_flags() const {
    const bool others = !answers_.empty();
    if (others && !mtap_)
      throw InputError({.source = "--answers", .expected = "--mtap together with it, which scores the answers"});
    if (!others && !tool_.empty()) {
      throw InputError({.source = "--tool", .expected = "--answers together with it: a tool is scored by its answers"});
    }
    if (leaderboard_ && (others || mtap_ || !only_.empty())) {
      throw InputError({.source = "--leaderboard", .expected = "no --mtap, --answers or --only beside it"});
    }
    if (!html_.empty() && !leaderboard_) {
      throw InputError({.source = "--html", .expected = "--leaderboard together with it"});
    }
  }

  // Facts that ship under a name, or a file; of a tool that nobody described, nothing is known.
  ToolFacts facts_of(const std::filesystem::path& folder, const std::string& tool) const {
    std::string name = tool;
    if (name.empty() && answers_.find('/') == std::string::npos &&
        std::filesystem::exists(folder / "tools" / (answers_ + ".json"))) {
      name = answers_;
    }
    if (name.empty()) return {.name = "this tool", .source = "nothing is known besides its answers"};
    const Json document = read_json_file(shipped_file("--tool", folder / "tools", name, "facts about a tool"));
    return read_tool_facts(JsonView(document, name));
  }

  // Measured cases that foretoken answered when the file was written (data/suite/answers/README.md); its cards are
  // answered anew.
  static SuiteAnswers own_cases(const std::filesystem::path& folder, const std::vector<SuiteCard>& cards) {
    const std::filesystem::path path = folder / "answers" / fmt::format("{}.csv", own_name);
    if (!std::filesystem::exists(path)) return {};
    SuiteAnswers all = read_suite_answers(path, cards);
    std::erase_if(all.answers, [](const SuiteAnswer& answer) { return !answer.measured; });
    return all;
  }

  Answer leaderboard(const std::filesystem::path& folder, const std::vector<SuiteCard>& cards,
                     const Library& library) const {
    std::vector<SuiteAnswer> own = answers_of(cards, run_all(cards, library));
    const SuiteAnswers own_measured = own_cases(folder, cards);
    own.insert(own.end(), own_measured.answers.begin(), own_measured.answers.end());
    std::vector<RankedTool> tools;
    for (const std::string& name : file_stems(folder / "answers", ".csv")) {
      RankedTool tool{.facts = facts_of(folder, name)};
      if (name == own_name) {
        tool.score = score_answers(cards, own, tool.facts);
        tool.unanswered = own_measured.unanswered;
      } else {
        const SuiteAnswers given = read_suite_answers(folder / "answers" / (name + ".csv"), cards);
        tool.score = score_answers(cards, given.answers, tool.facts);
        tool.unanswered = given.unanswered;
        tool.common = common_cases(cards, given.answers, own);
      }
      tools.push_back(std::move(tool));
    }
    std::stable_sort(tools.begin(), tools.end(),
                     [](const RankedTool& a, const RankedTool& b) { return a.score.total > b.score.total; });
    Answer answer{.text = leaderboard_text(tools), .json = leaderboard_json(tools)};
    if (!html_.empty()) {
      write_report(html_, leaderboard_html(tools));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

  // {data} in a command of a card is the folder of the library.
  static void fill_in(SuiteCard& card, const Library& library) {
    constexpr std::string_view mark = "{data}";
    const auto fill = [&](std::vector<std::string>& command) {
      for (std::string& word : command) {
        if (word.starts_with(mark)) word = library.directory().string() + word.substr(mark.size());
      }
    };
    fill(card.command);
    for (SuiteCheck& check : card.checks) fill(check.command);
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

  // The answer that `read` finds in what the command says.
  template <class Read>
  static SuiteRun run_command(const std::string& id, const std::vector<std::string>& command, const Library& library,
                              const Read& read) {
    const auto start = std::chrono::steady_clock::now();
    SuiteRun run{.answer = {.id = id}};
    try {
      run.answer = read(answer_command(command, library).json);
    } catch (const InputError& error) {
      run.error = error.sentence();
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
  }

  // A card's own command, or that of one of its checks.
  struct SuiteJob {
    size_t card = 0;
    std::optional<size_t> check;
  };

  std::vector<SuiteRun> run_all(const std::vector<SuiteCard>& cards, const Library& library) const {
    std::vector<SuiteRun> runs(cards.size());
    std::vector<SuiteJob> jobs;
    for (size_t i = 0; i < cards.size(); ++i) {
      runs[i].checks.resize(cards[i].checks.size());
      jobs.push_back({.card = i});
      for (size_t at = 0; at < cards[i].checks.size(); ++at) jobs.push_back({.card = i, .check = at});
    }
    std::mutex progress;
    size_t done = 0;
    for_each_on_threads(threads_to_use(threads_), jobs.size(), [&](size_t i) {
      const SuiteJob& job = jobs[i];
      const SuiteCard& card = cards[job.card];
      SuiteRun& run = runs[job.card];
      if (job.check) {
        const SuiteCheck& check = card.checks[*job.check];
        run.checks[*job.check] = run_command(check.name, check.command, library, [&](const Json& json) {
          return suite_check_answer(card, *job.check, json);
        });
      } else {
        SuiteRun own =
            run_command(card.id, card.command, library, [&](const Json& json) { return suite_answer(card, json); });
        run.answer = std::move(own.answer);  // not the checks, which other threads write
        run.error = std::move(own.error);
        run.seconds = own.seconds;
      }
      const std::lock_guard lock(progress);
      show_progress(fmt::format("{} of {} scenarios and checks", ++done, jobs.size()));
    });
    return runs;
  }

  // Cards beside what was measured of them, for the file: a reader of answers takes measurements from the cards.
  static std::vector<SuiteAnswer> with_measurements(const std::vector<SuiteCard>& cards,
                                                    std::vector<SuiteAnswer> answers) {
    for (SuiteAnswer& answer : answers) {
      const auto card =
          std::find_if(cards.begin(), cards.end(), [&](const SuiteCard& one) { return one.id == answer.id; });
      if (card == cards.end() || !card->measured) continue;
      answer.level = card->level;
      answer.measured = card->measured->value;
      answer.source = card->measured->source;
    }
    return answers;
  }

  std::vector<SuiteRun> given_runs(const std::vector<SuiteCard>& cards, const std::filesystem::path& folder,
                                   SuiteAnswers& cases) const {
    const SuiteAnswers all = read_suite_answers(
        shipped_file("--answers", folder / "answers", answers_, "a CSV file of answers", ".csv"), cards);
    const std::vector<SuiteAnswer>& given = all.answers;
    std::copy_if(given.begin(), given.end(), std::back_inserter(cases.answers),
                 [](const SuiteAnswer& answer) { return answer.measured.has_value(); });
    std::vector<SuiteRun> runs;
    for (const SuiteCard& card : cards) {
      const auto found =
          std::find_if(given.begin(), given.end(), [&](const SuiteAnswer& answer) { return answer.id == card.id; });
      SuiteRun run{.answer = {.id = card.id}, .error = std::string(not_answered)};
      if (found != given.end()) run = {.answer = *found};
      runs.push_back(std::move(run));
    }
    return runs;
  }

  // Of the cards and of their checks, each measurement once.
  static std::vector<SuiteAnswer> answers_of(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs) {
    std::vector<SuiteAnswer> answers;
    for (const SuiteRun& run : runs) {
      if (run.error.empty()) answers.push_back(run.answer);
    }
    for (const auto& [card, check] : distinct_measurements(cards)) {
      const std::vector<SuiteRun>& checks = runs[card].checks;  // empty where answers were read
      if (check && *check < checks.size() && checks[*check].error.empty()) answers.push_back(checks[*check].answer);
    }
    return answers;
  }

  bool list_ = false, mtap_ = false, leaderboard_ = false;
  std::vector<std::string> only_;
  std::string cards_, answers_, tool_, csv_, html_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_suite() {
  return std::make_unique<SuiteCommand>();
}

}  // namespace foretoken
