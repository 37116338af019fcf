#include "compose/profile/summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/statistics.h"
#include "compose/profile/kernel_class.h"

namespace foretoken {
namespace {

// Which streams run at each moment, from the starts and ends of all kernels in order.
std::vector<ProfiledStream> streams_of(const ProfiledStep& step) {
  struct Change {
    double when = 0;
    int64_t stream = 0;
    int by = 0;
  };
  std::vector<Change> changes;
  std::map<int64_t, ProfiledStream> streams;
  for (const ProfiledKernel& kernel : step.kernels) {
    ProfiledStream& one = streams[kernel.stream];
    one.stream = kernel.stream;
    ++one.kernels;
    one.device_us += kernel.us;
    changes.push_back({kernel.start_us, kernel.stream, 1});
    changes.push_back({kernel.start_us + kernel.us, kernel.stream, -1});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.when < b.when; });
  std::map<int64_t, int> running;  // streams with a kernel under way
  double now = 0;
  for (const Change& change : changes) {
    if (running.size() == 1) streams[running.begin()->first].alone_us += change.when - now;
    now = change.when;
    if ((running[change.stream] += change.by) == 0) running.erase(change.stream);
  }
  std::vector<ProfiledStream> result;
  for (const auto& [number, stream] : streams) result.push_back(stream);
  return result;
}

}  // namespace

ProfileSummary summarize_profile(const ProfiledStep& step) {
  struct Collected {
    ProfiledClass total;
    std::vector<double> host_us;
  };
  std::map<std::string, Collected> by_class;
  ProfileSummary summary{.streams = streams_of(step), .kernels = step.kernels.size(), .graph = step.graph};
  double busy_until = step.kernels.empty() ? 0 : step.kernels.front().start_us;
  const double begin = busy_until;
  std::vector<double> launches;
  const std::vector<std::optional<double>> intervals = host_intervals_us(step);
  for (size_t i = 0; i < step.kernels.size(); ++i) {
    const ProfiledKernel& kernel = step.kernels[i];
    const KernelClass kind = classify_kernel(kernel, kernel.call ? &step.operators[*kernel.call] : nullptr);
    const std::string_view role = kernel_role_name(kind.role);
    Collected& one = by_class[kind.variant.empty() ? std::string(role) : fmt::format("{} ({})", role, kind.variant)];
    ++one.total.kernels;
    one.total.device_us += kernel.us;
    if (intervals[i]) one.host_us.push_back(*intervals[i]);
    if (kernel.launched_us) launches.push_back(*kernel.launched_us);
    if (!kernel.call) ++summary.without_operator;
    summary.device_us += kernel.us;
    summary.gaps_us += std::max(0.0, kernel.start_us - busy_until);
    busy_until = std::max(busy_until, kernel.start_us + kernel.us);
  }
  summary.span_us = busy_until - begin;
  if (!launches.empty()) {
    const auto [first, last] = std::minmax_element(launches.begin(), launches.end());
    summary.launching_us = *last - *first;
  }
  for (auto& [name, one] : by_class) {
    one.total.name = name;
    if (!one.host_us.empty()) one.total.host_us = quantile(one.host_us, 0.5);
    summary.classes.push_back(std::move(one.total));
  }
  std::stable_sort(summary.classes.begin(), summary.classes.end(),
                   [](const ProfiledClass& a, const ProfiledClass& b) { return a.device_us > b.device_us; });
  return summary;
}

}  // namespace foretoken
