#include "app/cli/cpu_profile.h"

#include <unistd.h>
#include <fstream>

#include <fmt/format.h>

#include "app/cli/out_file.h"
#include "app/cli/progress.h"
#include "app/cli/xnnpack_calls.h"
#include "base/file.h"
#include "kernel/edge/edge_predictor_file.h"
#include "report/edge_report.h"

namespace foretoken {
namespace {

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
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU of this machine";
}

Answer profile_cpu(const CpuProfileRequest& request) {
  const std::vector<EdgeKernel> plan = cpu_sweep_plan();
  if (request.plan) return planned(plan);
  if (has_xnnpack()) check_out_folder("--out", request.out);
  CpuSweepOptions options;
  if (request.quick) options = {.samples = 3, .sample_seconds = 5e-4, .most_seconds = 30};
  const std::vector<EdgeRow> rows = sweep_cpu(plan, xnnpack_call, options, [](size_t done, size_t all) {
    if (done % 10 == 0 || done == all) show_progress(fmt::format("{} of {} kernels", done, all));
  });
  const std::filesystem::path folder = request.out;
  write_file(folder / "kernels.csv", edge_rows_csv(rows));
  const EdgeFit fit = fit_edge(rows, {.device = request.device.empty() ? processor_name() : request.device,
                                      .runtime = "XNNPACK",
                                      .source = "foretoken profile cpu",
                                      .date = request.date,
                                      .cache_bytes = own_cache_bytes()});
  write_file(folder / "predictor.json", edge_predictor_json(fit.predictor));
  Answer answer{.text = edge_fit_text(fit), .json = edge_fit_json(fit)};
  answer.text += fmt::format("wrote kernels.csv ({} of {} kernels) and predictor.json to {}\n", rows.size(),
                             plan.size(), request.out);
  answer.json.set("out", request.out).set("planned", plan.size());
  return answer;
}

}  // namespace foretoken
