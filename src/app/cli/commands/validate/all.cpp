#include "app/cli/commands/validate/all.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/question.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "app/cli/output/today.h"
#include "base/error.h"
#include "base/replace.h"
#include "base/text.h"
#include "report/accuracy/validation_history.h"

namespace foretoken {
namespace {

// A `validate` command. {library} is the folder of shipped facts, {data} that of the measurements, {every} the share of
// the serving points; `needs` is the place under {data} without which it cannot run.
struct Check {
  const char* name;
  const char* needs;
  const char* arguments;
};

constexpr Check checks[] = {
    {"kernels, H200, not fitted", "", "kernels --data {library}/measured_unfitted"},
    {"steps, H200", "", "steps --data {library}/measured/h200_sxm/steps.csv"},
    {"training, public facts", "", "training --facts"},
    {"training steps, H200", "", "training --data {library}/measured_training/h200_sxm.csv"},
    {"training steps with experts, H200", "", "training --data {library}/measured_training/h200_sxm_experts.csv"},
    {"fine-tuning steps, H200", "", "training --data {library}/measured_training/h200_sxm_fine_tuning.csv"},
    {"peak memory of steps, H200", "", "memory --data {library}/measured_training/h200_sxm_fine_tuning.csv"},
    {"memory of training", "training/memory.csv", "memory --data {data}/training/memory.csv"},
    {"image models, H200", "", "images --data {library}/measured_images/h200_sxm.csv"},
    {"schedules of GEMMs, H200, not fitted", "", "schedules --data {library}/measured_schedules/unfitted.csv"},
    {"chips as built", "", "accel"},
    {"collectives between nodes", "", "collectives --data {library}/networks/published/between_nodes.csv"},
    {"kernels, six GPUs", "kernels", "kernels --data {data}/kernels"},
    {"GEMMs, AMD", "amd/gemm.csv.gz", "kernels --data {data}/amd/gemm.csv.gz"},
    {"experts, AMD", "amd/moe.csv.gz", "kernels --data {data}/amd/moe.csv.gz"},
    {"kernels, LLMServingSim", "llmservingsim", "kernels --data {data}/llmservingsim"},
    {"steps, NeuSight", "neusight/end_to_end.csv", "steps --data {data}/neusight/end_to_end.csv"},
    {"collectives, NCCL", "comm/aic_nccl.csv.gz", "collectives --data {data}/comm/aic_nccl.csv.gz"},
    {"collectives, VIDUR", "comm/vidur_collectives.csv.gz", "collectives --data {data}/comm/vidur_collectives.csv.gz"},
    {"layers of experts in training", "training/moe_layer.csv", "moe-layer --data {data}/training/moe_layer.csv"},
    {"training runs", "training/runs.csv.gz", "training --data {data}/training/runs.csv.gz"},
    {"serving points", "serving/cases.csv.gz", "serving --data {data}/serving/cases.csv.gz --every {every}"},
    {"serving, SGLang cookbook", "serving/cookbook.csv", "serving --data {data}/serving/cookbook.csv --every {every}"},
    {"serving, load stages of vLLM", "serving/inference_perf_runs.csv",
     "serving --data {data}/serving/inference_perf_runs.csv"},
    {"serving, vLLM run RTX 4090", "serving/vllm_runs/RTX4090_Llama-3.1-8B",
     "serving --run {data}/serving/vllm_runs/RTX4090_Llama-3.1-8B"},
    {"serving, vLLM run RTX PRO 6000", "serving/vllm_runs/RTXPRO6000_Llama-3.1-8B",
     "serving --run {data}/serving/vllm_runs/RTXPRO6000_Llama-3.1-8B"},
    {"accelerator cases", "accelerator", "accel --data {data}/accelerator"},
    {"TPU v3", "tpuv3/workloads.csv", "accel --data {data}/tpuv3/workloads.csv"},
    {"edge networks", "edge/host_ort_models.csv", "edge --data {data}/edge/host_ort_models.csv"},
};

std::string filled(std::string_view word, const ValidateAll& wanted, const Library& library) {
  std::string text(word);
  replace_all(text, "{library}", library.directory().string());
  replace_all(text, "{data}", wanted.data.string());
  replace_all(text, "{every}", fmt::format("{}", wanted.serving_every));
  return text;
}

ValidationCheck run_check(const Check& check, const ValidateAll& wanted, const Library& library) {
  ValidationCheck result{.errors = {.name = check.name}};
  std::vector<std::string> arguments = {"validate"};
  for (const std::string_view word : split_words(check.arguments, " ")) {
    arguments.push_back(filled(word, wanted, library));
  }
  // No command without its data: it could not be run.
  const std::string needs = check.needs;
  if (!needs.empty() && (wanted.data.empty() || !std::filesystem::exists(wanted.data / needs))) {
    result.skipped =
        wanted.data.empty() ? "no measurements named; use --data FOLDER" : fmt::format("no {} in the data", needs);
    return result;
  }
  result.command = "foretoken " + shell_text(arguments);
  const auto start = std::chrono::steady_clock::now();
  try {
    const Answer answer = answer_command(arguments, library);
    if (answer.failure.empty()) {
      result.errors = checked_errors(check.name, answer.json);
    } else {
      result.skipped = answer.failure;
    }
  } catch (const InputError& error) {
    result.skipped = error.sentence();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

Answer validate_all(const ValidateAll& wanted, const Library& library) {
  if (!wanted.data.empty() && !std::filesystem::is_directory(wanted.data)) {
    throw InputError({.source = "--data", .value = printable(wanted.data.string()), .expected = "a folder"});
  }
  ValidationRun run{.date = wanted.date.empty() ? today() : wanted.date, .version = FORETOKEN_VERSION};
  if (!wanted.history.empty()) run.history = read_validation_history(wanted.history);
  for (const Check& check : checks) {
    show_progress(fmt::format("{} of {} checks: {}", run.checks.size(), std::size(checks), check.name));
    run.checks.push_back(run_check(check, wanted, library));
  }
  Answer answer{.text = validation_run_text(run), .json = validation_run_json(run)};
  if (!wanted.html.empty()) {
    write_report(wanted.html, validation_run_html(run));
    answer.text += fmt::format("wrote {}\n", wanted.html);
  }
  if (!wanted.history.empty()) {
    OutFile file("--history", wanted.history.string(), OutFile::Mode::append);
    file.stream() << validation_history_line(run);
    file.close();
    answer.text += fmt::format("added to {}\n", wanted.history.string());
  }
  return answer;
}

}  // namespace foretoken
