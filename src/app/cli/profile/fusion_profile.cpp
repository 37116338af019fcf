#include "app/cli/profile/fusion_profile.h"

#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "app/cli/profile/cpu_profile.h"
#include "base/child_process.h"
#include "base/counted.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/edge/find_fusion.h"
#include "model/onnx/writer.h"
#include "report/chip/fusion_report.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// Called as `RUNNER --models FILE... --rounds N`. It prints a table with the columns model (the file's name without
// .onnx) and cpu_ms_min, and may print other lines before: what it leaves out, and "runtime: NAME VERSION".
class ModelRunner {
 public:
  ModelRunner(std::vector<std::string> command, fs::path models, const FusionProfileRequest& request)
      : command_(std::move(command)),
        models_(std::move(models)),
        rounds_(request.rounds),
        limits_{.most_seconds = request.minutes * 60} {}

  FusionTimes times(std::span<const std::string> models) {
    ++pass_;
    show_progress(fmt::format("pass {}: {} models", pass_, models.size()));
    std::vector<std::string> call = command_;
    call.emplace_back("--models");
    for (const std::string& model : models) call.push_back((models_ / (model + ".onnx")).string());
    call.insert(call.end(), {"--rounds", fmt::format("{}", rounds_)});
    std::string table, said;
    const int status = run_child(
        call,
        [&](std::string_view line) {
          if (!table.empty() || line.starts_with("model,")) {
            table += fmt::format("{}\n", line);
          } else {
            hear(line, said);
          }
        },
        limits_);
    if (status != 0 || table.empty()) {
      fail(fmt::format("exit status {}{}{}", status, said.empty() ? "" : ": ", said));
    }
    return read_times(table, models);
  }

  const std::string& runtime() const { return runtime_; }

 private:
  void hear(std::string_view line, std::string& said) {
    constexpr std::string_view introduction = "runtime: ";
    constexpr size_t most_said = 500;
    if (line.starts_with(introduction)) {
      runtime_ = line.substr(introduction.size());
    } else if (said.size() < most_said && !line.empty()) {
      said += fmt::format("{}{}", said.empty() ? "" : "; ", printable(line));
    }
    if (line.starts_with("left out:")) show_progress(std::string(line));
  }

  [[noreturn]] void fail(std::string value) const {
    throw InputError({.source = "--runner",
                      .path = fmt::format("{}", fmt::join(command_, " ")),
                      .value = std::move(value),
                      .expected = "a program that is called with --models FILE... --rounds N and prints a table with "
                                  "the columns model and cpu_ms_min"});
  }

  FusionTimes read_times(const std::string& table, std::span<const std::string> models) const {
    const std::set<std::string> asked(models.begin(), models.end());
    CsvReader reader = CsvReader::from_text(table, "output of --runner");
    const size_t model = reader.column("model"), milliseconds = reader.column("cpu_ms_min");
    FusionTimes seconds;
    while (reader.next()) {
      const std::string name(reader.cell(model));
      if (!asked.contains(name)) reader.fail(model, "one of the models that it was given");
      seconds[name] = reader.number(milliseconds, {.least = 0, .most = 1e9}) * 1e-3;
    }
    return seconds;
  }

  std::vector<std::string> command_;
  fs::path models_;
  int64_t rounds_;
  ChildLimits limits_;
  int pass_ = 0;
  std::string runtime_ = "unknown runtime";
};

}  // namespace

Answer profile_fusion(const FusionProfileRequest& request, const Library& library) {
  std::vector<std::string> command;
  for (const std::string_view word : split_words(request.runner, " ")) command.emplace_back(word);
  if (command.empty()) command = {"node", (library.tools() / "measure_ort.mjs").string()};
  const fs::path folder = request.out, models = folder / "models";
  check_out_folder("--out", models.string());

  const FusionPlan plan = fusion_plan();
  for (const FusionModel& model : plan.models) write_file(models / (model.name + ".onnx"), onnx_text(model.file));
  ModelRunner runner(std::move(command), models, request);
  const FindFusionOptions options{.noise_share = request.noise_percent / 100,
                                  .passes = static_cast<int>(request.passes)};
  const FoundFusion result = find_fusion(
      plan, [&](std::span<const std::string> names) { return runner.times(names); }, options);

  const FusionSubject subject{.runtime = request.runtime.empty() ? runner.runtime() : request.runtime,
                              .device = request.device.empty() ? processor_name() : request.device};
  Answer answer{.text = fusion_text(subject, result), .json = fusion_json(subject, result, options)};
  write_file(folder / "fusion.json", answer.json.dump() + "\n");
  answer.text += fmt::format("wrote fusion.json and {} to {}\n", counted(plan.models.size(), "model"), request.out);
  return answer;
}

}  // namespace foretoken
