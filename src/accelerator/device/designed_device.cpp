#include "accelerator/device/designed_device.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "accelerator/workload/operator_problems.h"
#include "base/error.h"
#include "hardware/device_file.h"
#include "model/work.h"

namespace foretoken {
namespace {

// Models of chips from their structure lie within these of the silicon (docs/accuracy.md: Eyeriss, TPU v1), and rather
// below it: nobody's array waits less than its model says.
constexpr double low_share = 0.9, high_share = 1.3;

// What only moves data gets between half and all of the outermost memory's bandwidth.
constexpr double slowest_stream = 2;

constexpr int64_t exact_up_to = 16;

// The largest of 16, 20, 24, 28, 32, 40, ... that is not above `size`, and the next one.
std::pair<int64_t, int64_t> grid_around(int64_t size) {
  if (size <= exact_up_to) return {size, size};
  int64_t step = exact_up_to / 4;
  while (size >= 8 * step) step *= 2;
  const int64_t below = size / step * step;
  return {below, below == size ? size : below + step};
}

int64_t nearest_on_grid(int64_t size) {
  const auto [below, above] = grid_around(size);
  return size - below <= above - size ? below : above;
}

class MappedKernels : public DescribedKernels {
 public:
  MappedKernels(Architecture architecture, ConstraintsFor constraints, int64_t tries)
      : architecture_(std::move(architecture)),
        memory_bandwidth_(device_of(architecture_).memory_bandwidth->value),
        constraints_(std::move(constraints)),
        tries_(tries) {}

  Time time(const KernelShape& shape) const override {
    const std::vector<CountedProblem> problems = operator_problems(shape);
    if (problems.empty()) {
      const double moved = (count_work(shape).bytes() / memory_bandwidth_).value();
      const Estimate seconds{
          .value = moved, .low = moved, .high = slowest_stream * moved, .kind = Confidence::roofline};
      return {.seconds = seconds};
    }
    double cycles = 0;
    for (const CountedProblem& own : problems) cycles += own.count * cycles_of(own.problem);
    const double value = cycles / architecture_.clock_hz;
    const Estimate seconds{
        .value = value, .low = low_share * value, .high = high_share * value, .kind = Confidence::extrapolated};
    return {.seconds = seconds, .mapped = true};
  }

 private:
  double cycles_of(const Problem& problem) const {
    const int tokens = find_dimension(problem, "M"), heads = find_dimension(problem, "H");
    if (find_dimension(problem, "C") >= 0 || tokens < 0) return searched_cycles(problem);  // a convolution is as it is
    Problem near = problem;
    if (heads >= 0) {
      for (ProblemDimension& dimension : near.dimensions) dimension.size = nearest_on_grid(dimension.size);
      return searched_cycles(near) * operations(problem) / operations(near);
    }
    const int64_t size = problem.dimensions[tokens].size;
    const auto [below, above] = grid_around(size);
    near.dimensions[tokens].size = below;
    const double least = searched_cycles(near);
    if (below == above) return least;
    near.dimensions[tokens].size = above;
    const double most = searched_cycles(near);
    return least + (most - least) * static_cast<double>(size - below) / static_cast<double>(above - below);
  }

  double searched_cycles(const Problem& problem) const {
    std::vector<int64_t> key;
    for (const ProblemDimension& dimension : problem.dimensions) key.push_back(dimension.size);
    for (const ProblemTensor& tensor : problem.tensors) {
      for (const auto& rank : tensor.ranks) {
        for (const ProjectionTerm& term : rank) key.push_back(term.coefficient);
      }
    }
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = cycles_.find(key); found != cycles_.end()) return found->second;
    }
    const MapperOptions options{.objective = {.first = MappingMetric::latency, .second = MappingMetric::energy},
                                .most_tries = tries_};
    const MapperResult result = search_mappings(architecture_, problem, constraints_(problem), options);
    if (!result.best) {
      throw InputError({.source = architecture_.name, .value = problem.name, .expected = result.reason});
    }
    const double cycles = result.best->evaluation.latency_cycles();
    const std::lock_guard lock(mutex_);
    cycles_.emplace(std::move(key), cycles);
    return cycles;
  }

  Architecture architecture_;
  BytesPerSecond memory_bandwidth_;
  ConstraintsFor constraints_;
  int64_t tries_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, double> cycles_;
};

template <class Value>
Fact<Value> from_design(Value value) {
  return {.value = value, .source = "the accelerator's design"};
}

}  // namespace

Device device_of(const Architecture& architecture) {
  const AcceleratorLevel& memory = architecture.levels.front();
  const AcceleratorLevel& multipliers = architecture.levels.back();
  const std::optional<double> words = memory.bandwidth.shared ? memory.bandwidth.shared : memory.bandwidth.read;
  if (!words) {
    throw InputError({.source = architecture.name,
                      .path = memory.name + ".bandwidth",
                      .value = "(not given)",
                      .expected = "words per cycle of the outermost memory: a device needs its bandwidth"});
  }
  Device device{.name = architecture.name, .title = architecture.name, .vendor = "designed", .kind = DeviceKind::npu};
  device.boost_clock = from_design(Hertz(architecture.clock_hz));
  const double memory_instances = static_cast<double>(instances(memory));
  const double bytes_per_word = memory.word_bits / 8.0;
  device.memory_bandwidth =
      from_design(BytesPerSecond(*words * memory_instances * bytes_per_word * architecture.clock_hz));
  if (memory.depth > 0) {
    device.memory = from_design(
        Bytes(static_cast<double>(memory.depth) * memory.words_per_access * bytes_per_word * memory_instances));
  }
  const FlopsPerSecond peak(2 * static_cast<double>(instances(multipliers)) * architecture.clock_hz);
  for (size_t type = 0; type < dtype_count; ++type) {
    if (8 * bytes_per_element(static_cast<DType>(type)) <= multipliers.word_bits)
      device.dense_peak[type] = from_design(peak);
  }
  return device;
}

void check_sheet(const Device& device, const Architecture& architecture) {
  const Device implied = device_of(architecture);
  const auto check = [&](const std::string& key, double stated, double own, double unit) {
    if (std::abs(stated / own - 1) < 1e-3) return;
    throw InputError({.source = device.name,
                      .path = key,
                      .value = fmt::format("{:.6g}", stated / unit),
                      .expected = fmt::format("{:.6g}, as the design in the file gives", own / unit)});
  };
  if (device.memory_bandwidth) {
    check("memory_bandwidth_gb_per_s", device.memory_bandwidth->value.value(), implied.memory_bandwidth->value.value(),
          giga);
  }
  for (size_t type = 0; type < dtype_count; ++type) {
    if (!device.dense_peak[type] || !implied.dense_peak[type]) continue;
    check(fmt::format("dense_peak_tflops.{}", dtype_name(static_cast<DType>(type))),
          device.dense_peak[type]->value.value(), implied.dense_peak[type]->value.value(), tera);
  }
}

Json device_json(const AcceleratorDesign& design) {
  const Device device = device_of(design.architecture);
  Json file = Json::object({{"name", device.name},
                            {"title", device.title},
                            {"vendor", device.vendor},
                            {"kind", device_kind_name(device.kind)}});
  if (!design.summary.empty()) file.set("note", design.summary);
  Json peaks = Json::object();
  for (const DeviceFact& fact : device_facts(device)) {
    Json entry = Json::object({{"value", fact.value}, {"source", fact.source}});
    const size_t point = fact.key.find('.');
    if (point == std::string::npos) {
      file.set(fact.key, std::move(entry));
    } else {
      peaks.set(fact.key.substr(point + 1), std::move(entry));
      file.set(fact.key.substr(0, point), peaks);
    }
  }
  return file.set("accelerator", architecture_json(design));
}

std::shared_ptr<const DescribedKernels> mapped_kernels(Architecture architecture, ConstraintsFor constraints,
                                                       int64_t tries) {
  return std::make_shared<MappedKernels>(std::move(architecture), std::move(constraints), tries);
}

}  // namespace foretoken
