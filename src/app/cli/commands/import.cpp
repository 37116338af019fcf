#include <set>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/kernel_source_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/profile/chakra_writer.h"
#include "compose/profile/stack_writer.h"
#include "report/profile_report.h"

namespace foretoken {
namespace {

class ImportCommand : public Command {
 public:
  void declare(Options& options) override {
    Options& profile =
        options.subcommand("profile", "A PyTorch profiler trace: what ran, and the software stack it shows");
    profile.list("trace", traces_,
                 "Trace files (JSON, also .gz) with commas between, one for each phase: prefill, decode, train", true);
    profile.text("--as-stack", name_, "Write a stack of this name: which kernels an operator is, what launches cost");
    profile.text("--as-chakra", chakra_,
                 "Write Chakra execution traces, PREFIX.RANK.et; the traces are then those of the ranks of one job");
    profile.text("--out", out_, "Where to write the stack; default: NAME.json");
    profile.text("--extends", extends_, "A stack for what the traces do not show; its rules come after theirs");
    profile.flag("--costs-only", costs_only_,
                 "Read launch costs and gaps alone, from any trace; kernels and rules are those of --extends");
    profile.text("--device", device_,
                 "The device that was profiled: long kernels that took another time than predicted are corrected");
    declare_calibration(profile);
    profile.choice("--dispatch", dispatch_, {"trace", "fused", "graph", "piecewise", "eager"},
                   "How the stack launches kernels; trace: as the trace shows it");
    profile.flag("--summary", summary_, "Show the trace by class of kernel, also beside a stack");
    profile.footer(
        "A stack needs record_shapes=True, both activities (CPU and CUDA) and at least two layers without experts;\n"
        "--costs-only and --as-chakra read any trace.\n"
        "Examples:\n"
        "  foretoken import profile path/to/decode.json --summary\n"
        "  foretoken import profile path/to/rank0.json,path/to/rank1.json --as-chakra path/to/run\n"
        "  foretoken import profile path/to/prefill.json.gz,path/to/decode.json.gz --as-stack mine\n"
        "  foretoken step --model Llama-3.2-3B --device h200_sxm --batch 8 --context-len 1k --stack path/to/mine.json");
  }

  Answer run(const Library& library) const override {
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

 private:
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
                          .expected = "one trace for each rank"});
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

  std::vector<std::string> traces_;
  std::string name_, chakra_, out_, extends_, device_;
  std::string dispatch_ = "trace";
  bool summary_ = false, costs_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import() {
  return std::make_unique<ImportCommand>();
}

}  // namespace foretoken
