#include <set>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/grammar/launch_text.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/profile/chakra_writer.h"
#include "compose/profile/stack_writer.h"
#include "report/kernel/profile_report.h"
#include "report/serving/measured_run_report.h"
#include "serving/run_formats/run_formats.h"
#include "serving/runs/run_folder.h"
#include "serving/tokenizer/token_counter.h"

namespace foretoken {
namespace {

class ImportCommand : public Command {
 public:
  void declare(Options& options) override {
    declare_run(options);
    Options& profile = options.subcommand(
        "profile", "Read a PyTorch profiler trace: which kernels ran, and the software stack behind them");
    profile.list("trace", traces_,
                 "Trace files (JSON, optionally .gz), comma-separated, one per phase: prefill, decode, train", true);
    profile.text("--as-stack", name_,
                 "Write a software stack with this name: the kernels of each operator and the launch costs");
    profile.text("--as-chakra", chakra_,
                 "Write Chakra execution traces, PREFIX.RANK.et; the trace files are then the ranks of one job");
    profile.text("--out", out_, "File to write the stack to [NAME.json]");
    profile.text("--extends", extends_,
                 "Stack that fills in what the traces do not show; its rules come after those from the traces");
    profile.flag("--costs-only", costs_only_,
                 "Read only launch costs and gaps, from any trace; kernels and rules come from --extends");
    profile.text("--device", device_,
                 "Device that was profiled: corrects long kernels whose time differs from the prediction");
    declare_calibration(profile);
    profile.choice("--dispatch", dispatch_, {"trace", "fused", "graph", "piecewise", "eager"},
                   "How the stack launches kernels; trace = as the trace shows");
    profile.flag("--summary", summary_, "Show the trace by class of kernel, also when writing a stack");
    profile.footer(
        "A stack needs record_shapes=True, both activities (CPU and CUDA) and at least two layers without "
        "experts;\n--costs-only and --as-chakra read any trace.\nExamples:\n  foretoken import profile "
        "path/to/decode.json --summary\n  foretoken import profile path/to/rank0.json,path/to/rank1.json --as-chakra "
        "path/to/run\n  foretoken import profile path/to/prefill.json.gz,path/to/decode.json.gz --as-stack mine\n  "
        "foretoken step --model Llama-3.2-3B --device h200_sxm --batch 8 --context-len 1k --stack path/to/mine.json");
  }

  Answer run(const Library& library) const override {
    return runs_->was_chosen() ? import_run(library) : import_profile(library);
  }

 private:
  void declare_run(Options& options) {
    runs_ = &options.subcommand("run",
                                "Read a load test of a real server from the results of other tools, as a run folder");
    std::string help = "Files of one run, starting with the one that lists the requests, each in one of these formats:";
    for (const RunFormat& format : run_formats()) {
      help += fmt::format("{}{} ({})", help.ends_with(':') ? " " : "; ", format.name, format.summary);
    }
    runs_->list("file", run_files_, help, true);
    runs_->text("--as-run", run_folder_, "Write a run folder here: run.json, requests.csv, metrics.csv");
    runs_->text(
        "--launch-line", launch_line_,
        "Command that started the server, as text or @FILE (see serve --from); stored in run.json as the deployment");
    runs_->text("--device", run_device_, "GPU of the server, stored in run.json (`foretoken devices` lists them)");
    runs_->text("--tokenizer", tokenizer_file_,
                "The model's tokenizer.json, which counts the tokens of files that hold texts (ShareGPT); without it, "
                "four bytes count as one token");
    runs_->text("--name", run_name_, "Name of the run, for reports");
    runs_->footer(
        "Formats are recognized by the contents of the files. Files after the first add information that it "
        "lacks,\nfor example vLLM's log or samples of Prometheus.\nExamples:\n  foretoken import run "
        "path/to/vllm-result.json --as-run path/to/run\n  foretoken import run "
        "path/to/profile_export.jsonl,path/to/vllm.log --device h100_sxm --as-run path/to/run\n  foretoken import run "
        "path/to/ShareGPT.json --tokenizer path/to/tokenizer.json --as-run path/to/load");
  }

  Answer import_run(const Library& library) const {
    std::optional<TokenCounter> tokenizer;
    if (!tokenizer_file_.empty()) tokenizer.emplace(TokenCounter::read(tokenizer_file_));
    TokenCounter* const counter = tokenizer ? &*tokenizer : nullptr;
    MeasuredRun run = read_run(run_files_.front(), counter);
    for (size_t i = 1; i < run_files_.size(); ++i) complete_run(run, read_run(run_files_[i], counter));
    if (!launch_line_.empty()) {
      const LaunchLine line = read_launch_text("--launch-line", launch_line_, experts_of_models(library));
      for (const auto& [key, value] : line.fields.members()) run.deployment.set(key, value);
    }
    if (!run_device_.empty()) {
      // A device of the library by its own name, however it was written; a file
      // stays one.
      const std::string known = library.hardware().device(run_device_).name;
      run.device = HardwareCatalogue::is_path(run_device_) ? run_device_ : known;
      run.deployment.set("device", run.device);
    }
    if (!run_name_.empty()) run.name = run_name_;
    Answer answer{.text = measured_run_text({.run = run}), .json = run_json(run)};
    answer.json.set("requests", run.requests.size()).set("samples", run.samples.size());
    if (run_folder_.empty()) return answer;
    write_run_folder(run_folder_, run);
    answer.text += fmt::format("wrote {}\n", run_folder_);
    return answer;
  }

  Answer import_profile(const Library& library) const {
    std::vector<ProfiledStep> steps;
    for (const std::string& file : traces_) steps.push_back(read_profile(file));
    Answer answer;
    Json profiles = Json::array();
    for (const ProfiledStep& step : steps) {
      const ProfileSummary summary = summarize_profile(step);
      profiles.push(profile_json(summary, step.source));
      if (summary_ || (name_.empty() && chakra_.empty())) answer.text += profile_text(summary, step.source) + "\n";
    }
    answer.json = Json::object({{"profiles", std::move(profiles)}});
    if (!name_.empty()) write_stack(steps, library, answer);
    if (!chakra_.empty()) write_chakra(steps, answer);
    return answer;
  }

  void write_stack(const std::vector<ProfiledStep>& steps, const Library& library, Answer& answer) const {
    std::optional<KernelPredictor> predictor;
    if (!device_.empty()) predictor.emplace(library.predictor(device_));
    const ImportedStack imported = stack_from_profiles(steps, {.name = name_,
                                                               .extends = extends_,
                                                               .dispatch = dispatch_from_name(dispatch_),
                                                               .costs_only = costs_only_,
                                                               .predictor = predictor ? &*predictor : nullptr});
    const std::string text = imported.file.dump() + "\n";
    const std::string file = out_.empty() ? name_ + ".json" : out_;
    // A file that could not be read back would be found much later, by someone else.
    parse_stack(text, file, [&](const std::string& base) { return stacks_of(library).stack(base); });
    write_file(file, text);
    Json notes = Json::array();
    for (const std::string& note : imported.notes) {
      answer.text += note + "\n";
      notes.push(note);
    }
    answer.text += "wrote " + file + "\n";
    answer.json.set("stack", imported.file).set("file", file).set("notes", std::move(notes));
  }

  void write_chakra(const std::vector<ProfiledStep>& steps, Answer& answer) const {
    std::set<int64_t> written;
    Json files = Json::array();
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t rank = steps[i].rank.value_or(static_cast<int64_t>(i));
      if (!written.insert(rank).second) {
        throw InputError({.source = steps[i].source,
                          .path = "distributedInfo.rank",
                          .value = fmt::format("{}", rank),
                          .expected = "one trace per rank"});
      }
      const ImportedChakra imported = chakra_from_profile(steps[i]);
      const std::string file = chakra_path(chakra_, rank).string();
      write_file(file, chakra_text(imported.trace));
      for (const std::string& note : imported.notes) answer.text += note + "\n";
      answer.text += "wrote " + file + "\n";
      files.push(file);
    }
    answer.json.set("chakra", std::move(files));
  }

  Options* runs_ = nullptr;
  std::vector<std::string> traces_, run_files_;
  std::string run_folder_, launch_line_, run_device_, run_name_, tokenizer_file_;
  std::string name_, chakra_, out_, extends_, device_;
  std::string dispatch_ = "trace";
  bool summary_ = false, costs_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import() {
  return std::make_unique<ImportCommand>();
}

}  // namespace foretoken
