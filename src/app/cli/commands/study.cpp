#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/store_flags.h"
#include "app/cli/grammar/device_count.h"
#include "app/cli/grammar/options.h"
#include "app/cli/grammar/question.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compose/serving_engine.h"
#include "library/facts_digest.h"
#include "library/traffic_use.h"
#include "plan/store/shared_work.h"
#include "plan/store/table_file.h"
#include "report/plan/study_report.h"

namespace foretoken {
namespace {

constexpr const char* source_of_rows = "store";

// Progress of one search says little beside that of the study, which others may want to end.
class QuietSearch final : public ProgressListener {
 public:
  explicit QuietSearch(const std::function<void()>& wanted) : wanted_(wanted) {}
  void progressed(const std::string& /*text*/) override {}
  void check_wanted() override { wanted_(); }

 private:
  const std::function<void()>& wanted_;
};

// Files that a question is read from are among its texts: a model, a trace, a device.
void add_texts_of(const Json& value, std::set<std::filesystem::path>& texts) {
  if (value.kind() == Json::Kind::string) texts.insert(value.string());
  for (const Json& item : value.items()) add_texts_of(item, texts);
  for (const auto& [key, member] : value.members()) add_texts_of(member, texts);
}

// Names and numbers of the devices that a case offers.
std::vector<std::pair<std::string, std::string>> offered_devices(const StudyCase& one, const std::string& source,
                                                                 const Library& library) {
  std::vector<std::pair<std::string, std::string>> devices;
  const JsonView hardware = JsonView(one.question, source).at("hardware");
  const std::vector<JsonView> choices =
      hardware.is(Json::Kind::array) ? hardware.items() : std::vector<JsonView>{hardware};
  for (const JsonView& choice : choices) {
    const std::string names = choice.string();
    for (const std::string_view name : split(names, ",")) {
      devices.push_back(device_and_count(std::string(name), library.hardware()));
    }
  }
  return devices;
}

// About how long a search takes beside others: it grows with the devices to share out and the engines to try.
int64_t expected_work(const StudyCase& one, const std::string& source, const Library& library) {
  int64_t devices = 0;
  for (const auto& [name, count] : offered_devices(one, source, library)) {
    devices += parse_size("--hardware", count, device_counts);
  }
  const bool names_engines = JsonView(one.question, source).has("engines");
  return names_engines ? devices : devices * std::ssize(engine_kinds());
}

// Places of the cases, those that take longest first: nobody is left with a long one at the end.
std::vector<size_t> longest_first(const Study& study, const std::string& source, const Library& library) {
  std::vector<int64_t> work;
  for (const StudyCase& one : study.cases) work.push_back(expected_work(one, source, library));
  std::vector<size_t> order(study.cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return work[a] > work[b]; });
  return order;
}

class StudyCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("file", file_,
                 "YAML file with lists of models, hardware, traffic and engines (docs/planning/study.md)", true);
    options.text("--out", out_,
                 "Write study.csv, study.sqlite (table cases) and study.html to this folder. Finished cases are kept "
                 "in store.sqlite there: the same command resumes an interrupted study");
    options.flag("--list", list_, "Show the cases and the command of each one, without answering them");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Cases answered at the same time; 0 = one for each core. The result is the same");
    store_.declare(options);
    options.footer(
        "The file:\n"
        "  title: Chat on two kinds of GPU\n"
        "  models: [Llama-3.1-8B-Instruct, Qwen3-8B]\n"
        "  hardware: [1xH100, 2xL40S]\n"
        "  traffic: [{traffic: chat, users: 100}, {name: long, random_input_len: 8000, request_rate: 2}]\n"
        "  engines: [vllm, sglang]\n"
        "  settings: {slo: \"ttft<2s@p99,tpot<60ms@p99\"}\n"
        "Every combination is one `foretoken plan serve` question. Without engines, one case tries every engine.\n"
        "Traffic and settings take fields of plan serve (see foretoken schema plan serve).\n"
        "The exit status is 3 if no case can be served.\n"
        "Examples:\n"
        "  foretoken study chat.yaml --list\n"
        "  foretoken study chat.yaml --out chat_results\n"
        "  foretoken study chat.yaml --out chat_results --store postgresql://me@db/plans   # on any number of "
        "machines");
  }

  Answer run(const Library& library) const override {
    constexpr size_t most_bytes = size_t{1} << 20;
    const Study study = parse_study(read_file(file_, most_bytes), file_);
    const std::vector<std::string> commands = checked_commands(study, library);
    if (list_) return listed(study, commands);
    if (!out_.empty()) check_out_folder("--out", out_);
    StoreFlags kept = store_;
    if (kept.store.empty() && !out_.empty()) kept.store = out_file("store.sqlite");
    const ProcessRank rank = kept.own_rank();
    const StudyReport report{.study = study, .rows = rows(study, commands, kept.store, library)};
    if (!rank.answers()) return {.text = {}, .json = {}};
    check_any_makes_sense(study, report, library);
    Answer answer{.text = study_text(report), .json = study_json(report)};
    if (!any_case_serves(report)) answer.failure = study_sentence(report);
    if (out_.empty()) return answer;
    write_report(out_file("study.csv"), study_csv(report));
    write_report(out_file("study.html"), study_html(report, options_->line()));
    write_table_file(out_file("study.sqlite"), "cases", report.rows);
    answer.text += fmt::format("\nwrote {0}/study.csv, {0}/study.sqlite and {0}/study.html\n", out_);
    return answer;
  }

 private:
  std::string out_file(const char* name) const { return (std::filesystem::path(out_) / name).string(); }

  static Answer listed(const Study& study, const std::vector<std::string>& commands) {
    Json cases = Json::array();
    for (const std::string& command : commands) cases.push(command);
    return {.text = study_list_text(study, commands),
            .json = Json::object({{"title", study.title}, {"commands", std::move(cases)}})};
  }

  // Wrong fields and names are found before anything is simulated.
  std::vector<std::string> checked_commands(const Study& study, const Library& library) const {
    std::vector<std::string> commands;
    std::set<std::string> known;
    for (const StudyCase& one : study.cases) {
      const Question question(one.question, file_);
      question.check_required();
      commands.push_back(question.line());
      const JsonView fields(one.question, file_);
      if (known.insert("model " + one.model).second) {
        check_name(fields.at("model"), [&](const std::string& name) { library.models().model(name); });
      }
      if (known.insert("hardware " + one.hardware).second) {
        check_name(fields.at("hardware"), [&](const std::string& text) {
          const auto [device, count] = device_and_count(text, library.hardware());
          library.hardware().device(device);
          parse_size("--hardware", count, device_counts);
        });
      }
      if (fields.has("engines") && known.insert("engines " + one.engines).second) {
        check_name(fields.at("engines"), [](const std::string& name) { engine_kind(name); });
      }
      if (fields.has("traffic") && known.insert("traffic " + one.traffic).second) {
        check_name(fields.at("traffic"), [&](const std::string& name) { traffic_use(library.directory(), name); });
      }
    }
    return commands;
  }

  // Complains with the place in the file.
  static void check_name(const JsonView& value, const std::function<void(const std::string&)>& look_up) {
    const std::vector<JsonView> items = value.is(Json::Kind::array) ? value.items() : std::vector<JsonView>{value};
    for (const JsonView& item : items) {
      const std::string names = item.string();
      for (const std::string_view name : split(names, ",")) {
        try {
          look_up(std::string(name));
        } catch (const InputError& error) {
          item.fail(error.problem().expected, error.problem().suggestion);
        }
      }
    }
  }

  Json rows(const Study& study, const std::vector<std::string>& commands, const std::string& store,
            const Library& library) const {
    const unsigned threads = threads_to_use(threads_);
    // Few cases leave cores to each.
    const int64_t threads_of_case = std::max<int64_t>(1, threads / std::max<int64_t>(1, std::ssize(study.cases)));
    std::atomic<size_t> done = 0;
    std::mutex telling;
    const std::function<void()> wanted = wanted_check();
    const std::vector<size_t> order = longest_first(study, file_, library);
    const auto work = [&](size_t place) {
      const size_t i = order[place];
      Json asked = study.cases[i].question;
      asked.set("threads", threads_of_case);
      if (is_shared(place, study) && !store.empty()) share_work(asked, store);
      const std::string row = answer_case(study.cases[i], std::move(asked), commands[i], library, wanted).dump(0);
      const std::lock_guard lock(telling);
      show_progress(fmt::format("{} of {} cases answered here", ++done, study.cases.size()));
      return row;
    };
    std::vector<std::string> results(study.cases.size());
    if (store.empty()) {
      std::atomic<size_t> next = 0;
      run_on_threads(threads, [&] {
        for (size_t i = next++; i < results.size(); i = next++) results[i] = work(i);
      });
    } else {
      results = stored(study, order, store, threads, library, work);
    }
    std::vector<size_t> places(order.size());  // of cases, among the results
    for (size_t place = 0; place < order.size(); ++place) places[order[place]] = place;
    Json rows = Json::array();
    for (const size_t place : places) rows.push(parse_json(results[place], source_of_rows));
    return rows;
  }

  std::vector<std::string> stored(const Study& study, const std::vector<size_t>& order, const std::string& store,
                                  unsigned threads, const Library& library,
                                  const std::function<std::string(size_t)>& work) const {
    std::set<std::filesystem::path> files;
    std::vector<std::string> keys;
    for (const size_t i : order) {
      const StudyCase& one = study.cases[i];
      add_texts_of(one.question, files);
      // A device's file stands in one text with the number of devices.
      for (const auto& [device, count] : offered_devices(one, file_, library)) files.insert(device);
      keys.push_back(fmt::format("{} | {} | {} | {} | {}", one.model, one.hardware, one.traffic, one.engines,
                                 one.question.dump(0)));
    }
    const std::vector<std::filesystem::path> own(files.begin(), files.end());
    ResultStore results(store, "study, " + facts_digest(library, own));
    return shared_results(
        results, keys, threads, [&](unsigned /*thread*/, size_t i) { return work(i); },
        [&](size_t place) { return is_shared(place, study) && !has_time_limit(study.cases[order[place]].question); });
  }

  // The last cases are searched by all workers together: none is idle while another answers the last one.
  static bool is_shared(size_t place, const Study& study) {
    constexpr size_t part = 4, least = 2;
    return place + std::max(least, study.cases.size() / part) >= study.cases.size();
  }
  // Searches that are shared run to their end.
  static bool has_time_limit(const Json& question) { return JsonView(question, source_of_rows).has("time_limit"); }
  static void share_work(Json& question, const std::string& store) {
    if (has_time_limit(question)) return;
    question.set("store", store);
    question.set("ranks", int64_t{1});  // whatever started this process: every worker of the study wants the answer
  }

  Json answer_case(const StudyCase& one, Json asked, const std::string& command, const Library& library,
                   const std::function<void()>& wanted) const {
    QuietSearch listener(wanted);
    const ProgressScope scope(listener);
    try {
      return study_row(one, Question(std::move(asked), file_).answer(library).json, command);
    } catch (const InputError& error) {
      return refused_study_row(one, error.problem().expected, command);
    }
  }

  // Where every question is refused, the file is wrong and not the hardware: complains of the first.
  void check_any_makes_sense(const Study& study, const StudyReport& report, const Library& library) const {
    if (is_all_refused(report)) Question(study.cases.front().question, file_).answer(library);
  }

  const Options* options_ = nullptr;
  std::string file_, out_;
  bool list_ = false;
  int64_t threads_ = 0;
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> make_study() {
  return std::make_unique<StudyCommand>();
}

}  // namespace foretoken
