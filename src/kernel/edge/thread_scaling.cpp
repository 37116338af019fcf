#include "kernel/edge/thread_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/csv.h"
#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/edge/cpu_sweep.h"

namespace foretoken {
namespace {

// One kernel on one thread and on several, without the call.
struct KernelOnThreads {
  double one = 0, several = 0;
};

// Small kernels are mostly call; their work is known to so much of it.
constexpr double least_share_of_call = 0.05;

double least_empty_call(std::span<const EdgeRow> rows) {
  std::optional<double> least;
  for (const EdgeRow& row : rows) {
    if (row.kernel.kind == EdgeKernelKind::empty) least = std::min(least.value_or(row.seconds), row.seconds);
  }
  return least.value_or(0);
}

// As logarithms, of whole calls.
std::vector<double> residuals(std::span<const KernelOnThreads> kernels, const EdgeSpeedup& speedup, double call) {
  std::vector<double> all;
  for (const KernelOnThreads& kernel : kernels) {
    all.push_back(std::abs(portable_log((speedup.seconds(kernel.one) + call) / (kernel.several + call))));
  }
  return all;
}

// The speedup and the wait that are nearest to the kernels in absolute logarithms, among enough of both.
EdgeSpeedup nearest_speedup(std::span<const KernelOnThreads> kernels, double call, int threads) {
  constexpr int steps = 50, waits = 48;
  constexpr double least_wait_ns = 500, wait_ratio = 1.15;
  EdgeSpeedup best;
  double least = std::numeric_limits<double>::infinity();
  double wait_ns = 0;
  for (int w = 0; w < waits; ++w) {
    for (int step = 0; step <= steps; ++step) {
      const EdgeSpeedup tried{.times = 1 + (threads - 1) * static_cast<double>(step) / steps, .wait_ns = wait_ns};
      const double off = mean(residuals(kernels, tried, call));
      if (off < least) {
        least = off;
        best = tried;
      }
    }
    wait_ns = w == 0 ? least_wait_ns : wait_ns * wait_ratio;
  }
  constexpr double inside = 0.9;
  best.wait_ns = std::round(best.wait_ns);
  best.half_width = std::round(1e4 * quantile(residuals(kernels, best, call), inside)) / 1e4;
  return best;
}

}  // namespace

std::vector<EdgeKernel> thread_sweep_plan() {
  constexpr size_t of_each_kind = 6;
  std::map<EdgeKernelKind, std::vector<EdgeKernel>> by_kind;
  for (const EdgeKernel& kernel : cpu_sweep_plan()) {
    if (kernel.kind != EdgeKernelKind::empty) by_kind[kernel.kind].push_back(kernel);
  }
  std::vector<EdgeKernel> plan = {{.kind = EdgeKernelKind::empty}};
  for (auto& [kind, kernels] : by_kind) {
    std::ranges::stable_sort(kernels, {}, [](const EdgeKernel& kernel) { return edge_work(kernel).bytes().value(); });
    const size_t count = std::min(of_each_kind, kernels.size());
    // The smallest quarter says little: it takes hardly any of a model's time.
    const size_t first = kernels.size() / 4;
    for (size_t i = 0; i < count; ++i) plan.push_back(kernels[first + (kernels.size() - first) * i / count]);
  }
  return plan;
}

EdgeThreadScaling scaling_of(std::span<const EdgeRow> before, std::span<const EdgeRow> after, int threads) {
  ensure(before.size() == after.size(), "both sweeps timed the same kernels");
  const double call_before = least_empty_call(before), call_after = least_empty_call(after);
  std::map<EdgeKernelKind, std::vector<KernelOnThreads>> kinds;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].kernel.kind == EdgeKernelKind::empty) continue;
    const double least = least_share_of_call * call_before;
    kinds[before[i].kernel.kind].push_back({.one = std::max(before[i].seconds - call_before, least),
                                            .several = std::max(after[i].seconds - call_after, least)});
  }
  EdgeThreadScaling scaling{.threads = threads};
  for (const auto& [kind, kernels] : kinds) scaling.kinds[kind] = nearest_speedup(kernels, call_before, threads);
  return scaling;
}

std::vector<EdgeThreadScaling> read_thread_scaling(const std::filesystem::path& path) {
  CsvReader csv(path);
  const size_t kind = csv.column("kind"), parameters = csv.column("params"), threads = csv.column("threads"),
               least = csv.column("wall_ms_min");
  std::map<int, std::vector<EdgeRow>> rows;
  while (csv.next()) {
    rows[static_cast<int>(csv.integer(threads, {.least = 1, .most = 4096}))].push_back(
        {.row = csv.row(),
         .kernel = parse_edge_kernel(csv.cell(kind), csv.cell(parameters), csv.source(), csv.line()),
         .seconds = csv.number(least, {.least = 1e-7, .most = 1e9}) * 1e-3});
  }
  std::vector<EdgeThreadScaling> scaling;
  for (const auto& [count, own] : rows) {
    if (!std::ranges::equal(own, rows.begin()->second, {}, &EdgeRow::kernel, &EdgeRow::kernel) || !rows.contains(1)) {
      throw InputError({.source = path.string(),
                        .path = "threads",
                        .value = std::to_string(count),
                        .expected = "the same kernels, in one order, on 1 thread and on each other count"});
    }
    if (count > 1) scaling.push_back(scaling_of(rows.at(1), own, count));
  }
  return scaling;
}

}  // namespace foretoken
