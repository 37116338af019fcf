#include "app/cli/profile/cpu_profile.h"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "app/cli/profile/xnnpack_calls.h"
#include "base/counted.h"
#include "base/file.h"
#include "kernel/edge/edge_predictor_file.h"
#include "kernel/edge/thread_scaling.h"
#include "report/edge/edge_report.h"
#include "report/parts/table.h"

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

struct CacheSize {
  double bytes = 0;
  bool assumed = false;
};

// As the C library says, or the kernel ("32768K"), which knows caches of Arm cores that the C library does not.
CacheSize cache_size(int name, int level, double usual_bytes) {
  if (const long bytes = sysconf(name); bytes > 0) return {.bytes = static_cast<double>(bytes)};
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int own_level = 0;
    double size = 0;
    char unit = ' ';
    std::ifstream(folder + "level") >> own_level;
    std::ifstream(folder + "size") >> size >> unit;
    if (own_level != level || size <= 0) continue;
    return {.bytes = size * (unit == 'K' ? 1024.0 : unit == 'M' ? 1024.0 * 1024.0 : 1.0)};
  }
  return {.bytes = usual_bytes, .assumed = true};
}

std::string assumed_cache_text(const CacheSize& size, std::string_view name) {
  if (!size.assumed) return "";
  return fmt::format(
      "The size of the {} cache is not known here; {:.0f} MiB are assumed, which matters for networks whose weights "
      "exceed it. `foretoken fit edge-kernels` takes the sweep with another size.\n",
      name, size.bytes / (1 << 20));
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

// 2, 4, 8, ... up to `most`, and that.
std::vector<int> thread_counts(int64_t most) {
  std::vector<int> counts;
  for (int64_t threads = 2; threads < most; threads *= 2) counts.push_back(static_cast<int>(threads));
  if (most > 1) counts.push_back(static_cast<int>(most));
  return counts;
}

// Whether other programs hold the cores, so that threads would wait for them. This sweep itself keeps one busy.
bool machine_is_busy(int64_t cores) {
  double load = 0;
  constexpr double own_load = 1, most_share = 0.25;
  return getloadavg(&load, 1) == 1 && load - own_load > most_share * static_cast<double>(cores);
}

std::vector<EdgeThreadScaling> measured_scaling(int64_t most_threads, CpuSweepOptions options) {
  options.wall_clock = true;
  const std::vector<EdgeKernel> plan = thread_sweep_plan();
  const auto sweep = [&](int threads) {
    show_progress(fmt::format("{} kernels on {} threads", plan.size(), threads));
    return sweep_cpu(
        plan, [threads](const EdgeKernel& kernel) { return xnnpack_call(kernel, threads); }, options);
  };
  std::vector<EdgeThreadScaling> scaling;
  const std::vector<int> counts = thread_counts(most_threads);
  if (counts.empty()) return scaling;
  const std::vector<EdgeRow> alone = sweep(1);
  for (const int threads : counts) {
    const std::vector<EdgeRow> together = sweep(threads);
    if (together.size() == alone.size()) scaling.push_back(scaling_of(alone, together, threads));
  }
  return scaling;
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
  const std::vector<EdgeRow> rows = sweep_cpu(
      plan, [](const EdgeKernel& kernel) { return xnnpack_call(kernel); }, options,
      [](size_t done, size_t all) {
        if (done % 10 == 0 || done == all) show_progress(fmt::format("{} of {} kernels", done, all));
      });
  const CacheSize own_cache = cache_size(_SC_LEVEL2_CACHE_SIZE, 2, EdgeFitOptions{}.cache_bytes);
  const CacheSize last_level = cache_size(_SC_LEVEL3_CACHE_SIZE, 3, EdgeFitOptions{}.last_level_bytes);
  EdgeFit fit = fit_edge(rows, {.device = request.device.empty() ? processor_name() : request.device,
                                .runtime = "XNNPACK",
                                .source = "foretoken profile cpu",
                                .date = request.date,
                                .cache_bytes = own_cache.bytes,
                                .last_level_bytes = last_level.bytes});
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t most_threads = request.threads > 0 ? request.threads : cores;
  const bool skips_threads = most_threads > 1 && machine_is_busy(cores);
  if (!skips_threads) fit.predictor.thread_scaling = measured_scaling(most_threads, options);
  Answer answer{.text = edge_fit_text(fit), .json = edge_fit_json(fit)};
  answer.text += wrap_lines(
      assumed_cache_text(own_cache, "second-level") + assumed_cache_text(last_level, "last-level"), page_width(), 2);
  if (skips_threads) {
    answer.text +=
        "Other programs are using the cores, so speedups on more threads were not measured. Repeat this on an idle "
        "machine.\n";
  }
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
