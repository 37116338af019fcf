#include "app/cli/profile/cpu_profile.h"

#include <unistd.h>
#include <fstream>

#include <fmt/format.h>

#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "app/cli/profile/xnnpack_calls.h"
#include "base/counted.h"
#include "base/file.h"
#include "kernel/edge/edge_predictor_file.h"
#include "report/edge/edge_report.h"

namespace foretoken {
namespace {

// Cores of Arm itself (implementer 0x41), by the part numbers of their technical reference manuals (MIDR_EL1).
struct ArmPart {
  std::string_view number, name;
};
constexpr ArmPart arm_parts[] = {
    {"0xd03", "Cortex-A53"},  {"0xd05", "Cortex-A55"},  {"0xd07", "Cortex-A57"},  {"0xd08", "Cortex-A72"},
    {"0xd09", "Cortex-A73"},  {"0xd0a", "Cortex-A75"},  {"0xd0b", "Cortex-A76"},  {"0xd0c", "Neoverse-N1"},
    {"0xd0d", "Cortex-A77"},  {"0xd40", "Neoverse-V1"}, {"0xd41", "Cortex-A78"},  {"0xd44", "Cortex-X1"},
    {"0xd46", "Cortex-A510"}, {"0xd47", "Cortex-A710"}, {"0xd48", "Cortex-X2"},   {"0xd49", "Neoverse-N2"},
    {"0xd4d", "Cortex-A715"}, {"0xd4e", "Cortex-X3"},   {"0xd4f", "Neoverse-V2"},
};

double own_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<double>(bytes) : EdgeFitOptions{}.cache_bytes;
}

Answer planned(std::span<const EdgeKernel> plan) {
  std::string text = "kind,params\n";
  Json kernels = Json::array();
  for (const EdgeKernel& kernel : plan) {
    const std::string_view kind = edge_kind_name(kernel.kind);
    const std::string parameters = edge_parameters(kernel);
    text += fmt::format("{},{}\n", kind, parameters);
    kernels.push(Json::object({{"kind", kind}, {"params", parameters}}));
  }
  return {.text = std::move(text), .json = Json::object({{"kernels", std::move(kernels)}})};
}

}  // namespace

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string maker, part;
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) maker = value;
    if (line.starts_with("CPU part")) part = value;
  }
  if (part.empty()) return "CPU of this machine";
  if (maker == "0x41") {
    for (const ArmPart& known : arm_parts) {
      if (known.number == part) return fmt::format("Arm {}", known.name);
    }
  }
  return fmt::format("CPU of implementer {}, part {}", maker, part);
}

Answer profile_cpu(const CpuProfileRequest& request) {
  const std::vector<EdgeKernel> plan = cpu_sweep_plan();
  if (request.plan) return planned(plan);
  if (has_xnnpack() && !request.out.empty()) check_out_folder("--out", request.out);
  CpuSweepOptions options;
  if (request.quick) options = {.samples = 3, .sample_seconds = 5e-4, .most_seconds = 30};
  const std::vector<EdgeRow> rows = sweep_cpu(plan, xnnpack_call, options, [](size_t done, size_t all) {
    if (done % 10 == 0 || done == all) show_progress(fmt::format("{} of {} kernels", done, all));
  });
  const EdgeFit fit = fit_edge(rows, {.device = request.device.empty() ? processor_name() : request.device,
                                      .runtime = "XNNPACK",
                                      .source = "foretoken profile cpu",
                                      .date = request.date,
                                      .cache_bytes = own_cache_bytes()});
  Answer answer{.text = edge_fit_text(fit), .json = edge_fit_json(fit)};
  answer.json.set("out", request.out).set("planned", plan.size());
  if (request.out.empty()) {
    answer.text += fmt::format("{} of {}; use --out FOLDER to keep the sweep and the predictor\n", rows.size(),
                               counted(plan.size(), "kernel"));
    return answer;
  }
  const std::filesystem::path folder = request.out;
  write_file(folder / "kernels.csv", edge_rows_csv(rows));
  write_file(folder / "predictor.json", edge_predictor_json(fit.predictor));
  answer.text += fmt::format("wrote kernels.csv ({} of {}) and predictor.json to {}\n", rows.size(),
                             counted(plan.size(), "kernel"), request.out);
  return answer;
}

}  // namespace foretoken
