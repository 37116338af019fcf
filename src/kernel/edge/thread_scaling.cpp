#include "kernel/edge/thread_scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/counted.h"
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

// The mean error as a logarithm. Whole calls are compared: errors of a kernel that is far shorter than its call do not
// matter.
double mean_error(std::span<const KernelOnThreads> kernels, const EdgeSpeedup& speedup, double call) {
  double sum = 0;
  for (const KernelOnThreads& kernel : kernels) {
    sum += std::abs(portable_log((speedup.seconds(kernel.one) + call) / (kernel.several + call)));
  }
  return sum / static_cast<double>(kernels.size());
}

// A gain that fewer kernels show is more likely a property of these, and would grow with the size of others.
bool gains_enough(std::span<const KernelOnThreads> kernels) {
  constexpr double least_share = 0.25, gain = 1.05;
  const auto gains = [&](const KernelOnThreads& kernel) { return kernel.one > gain * kernel.several; };
  return static_cast<double>(std::ranges::count_if(kernels, gains)) >=
         least_share * static_cast<double>(kernels.size());
}

// The speedup and the wait that are nearest to the kernels, among enough of both; none where too few gain.
EdgeSpeedup nearest_speedup(std::span<const KernelOnThreads> kernels, double call, double most_times) {
  constexpr int steps = 50, waits = 48;
  constexpr double least_wait_ns = 500, wait_ratio = 1.15;
  EdgeSpeedup best;
  if (!gains_enough(kernels)) return best;
  double least = mean_error(kernels, best, call);
  double wait_ns = 0;
  for (int w = 0; w < waits; ++w) {
    for (int step = 1; step <= steps; ++step) {
      const EdgeSpeedup tried{.times = 1 + (most_times - 1) * static_cast<double>(step) / steps, .wait_ns = wait_ns};
      const double off = mean_error(kernels, tried, call);
      if (off < least) {
        least = off;
        best = tried;
      }
    }
    wait_ns = w == 0 ? least_wait_ns : wait_ns * wait_ratio;
  }
  best.wait_ns = std::round(best.wait_ns);
  return best;
}

// Of kernels that the speedup was not fitted to, without their calls; those that are shorter than a call, where noise
// is most of what is left, only if there are no others.
double left_out_half_width(std::span<const KernelOnThreads> kernels, double call, double most_times) {
  constexpr size_t most_folds = 10;
  constexpr double inside = 0.9;
  const size_t folds = std::min(most_folds, kernels.size());
  std::vector<double> all, long_ones;
  for (size_t fold = 0; fold < folds; ++fold) {
    std::vector<KernelOnThreads> others;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (i % folds != fold) others.push_back(kernels[i]);
    }
    const EdgeSpeedup speedup = nearest_speedup(others, call, most_times);
    for (size_t i = fold; i < kernels.size(); i += folds) {
      const double off = std::abs(portable_log(speedup.seconds(kernels[i].one) / kernels[i].several));
      all.push_back(off);
      if (kernels[i].one > call) long_ones.push_back(off);
    }
  }
  const std::vector<double>& counting = long_ones.empty() ? all : long_ones;
  // Of a few, the largest: a quantile would be that of the others.
  return quantile(counting, counting.size() < most_folds ? 1 : inside);
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

EdgeThreadScaling scaling_of(std::span<const EdgeRow> before, std::span<const EdgeRow> after, int threads, int base) {
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
  constexpr size_t enough = 3;
  const double most_times = static_cast<double>(threads) / base;
  for (const auto& [kind, kernels] : kinds) {
    if (kernels.size() < enough) continue;
    EdgeSpeedup& own = scaling.kinds[kind] = nearest_speedup(kernels, call_before, most_times);
    own.half_width = std::round(1e4 * left_out_half_width(kernels, call_before, most_times)) / 1e4;
  }
  return scaling;
}

std::vector<EdgeThreadScaling> read_thread_scaling(const std::filesystem::path& path, int base) {
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
  const auto fail = [&](const std::string& value, const std::string& expected) {
    throw InputError({.source = path.string(), .path = "threads", .value = value, .expected = expected});
  };
  if (rows.upper_bound(base) == rows.end() || !rows.contains(base)) {
    std::vector<int> counts;
    for (const auto& [count, own] : rows) counts.push_back(count);
    fail(rows.empty() ? "no rows" : fmt::format("rows on {} only", fmt::join(counts, " and ")),
         fmt::format("rows on {}, as in the sweep, and on more threads", counted(base, "thread")));
  }
  std::vector<EdgeThreadScaling> scaling;
  for (const auto& [count, own] : rows) {
    if (!std::ranges::equal(own, rows.at(base), {}, &EdgeRow::kernel, &EdgeRow::kernel)) {
      fail(std::to_string(count), "the same kernels, in one order, on each count of threads");
    }
    if (count > base) scaling.push_back(scaling_of(rows.at(base), own, count, base));
  }
  return scaling;
}

}  // namespace foretoken
