#include "accelerator/device/designed_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/tile.h"
#include "accelerator/workload/fusion.h"
#include "accelerator/workload/operator_problems.h"
#include "accelerator/workload/vector_work.h"
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

// Scores that are less than this share of the words outside, as in most decodes, are not worth a search of their own.
constexpr double few_scores = 0.05;

// There are about a hundred ways to fuse. They share the tries, and the best is searched again.
constexpr int64_t ways_to_fuse = 100;

// Modules that a design without a bandwidth or size of its own is taken to have.
struct UsualMemory {
  std::string_view component;
  double bytes_per_second, bytes;
  std::string_view what;
};
constexpr UsualMemory usual_memories[] = {
    {"LPDDR4", 25.6e9, 16.0 * (1LL << 30), "a 64-bit LPDDR4-3200 package of 16 GiB (JEDEC JESD209-4)"},
    {"DDR3", 12.8e9, 8.0 * (1LL << 30), "a DDR3-1600 module of 8 GiB (JEDEC JESD79-3)"},
    {"DDR4", 25.6e9, 16.0 * (1LL << 30), "a DDR4-3200 module of 16 GiB (JEDEC JESD79-4)"},
    {"HBM2", 256e9, 8.0 * (1LL << 30), "an HBM2 stack of 8 GiB (JEDEC JESD235A)"},
    {"HBM3", 819.2e9, 16.0 * (1LL << 30), "an HBM3 stack of 16 GiB (JEDEC JESD238)"},
};

const UsualMemory* usual_memory(const AcceleratorLevel& level) {
  for (const UsualMemory& usual : usual_memories) {
    if (usual.component == level.component) return &usual;
  }
  return nullptr;
}

bool has_rate(const AcceleratorLevel& level) {
  return level.bandwidth.shared || level.bandwidth.read;
}

// With the bandwidth of its outermost memory, which may be that of a usual module.
Architecture with_bandwidth(Architecture architecture) {
  AcceleratorLevel& memory = architecture.levels.front();
  if (has_rate(memory)) return architecture;
  const UsualMemory* usual = usual_memory(memory);
  if (usual == nullptr) {
    throw InputError({.source = architecture.name,
                      .path = memory.name + ".bandwidth",
                      .value = "(not given)",
                      .expected = "words per cycle of the outermost memory: a device needs its bandwidth"});
  }
  memory.bandwidth.shared =
      usual->bytes_per_second * 8 / memory.word_bits / architecture.clock_hz / static_cast<double>(instances(memory));
  return architecture;
}

bool multiplies_integers(const Architecture& architecture) {
  return architecture.levels.back().component.starts_with("int");
}

int widest_word(const Architecture& architecture) {
  int bits = 0;
  for (const AcceleratorLevel& level : architecture.levels) {
    if (level.kind == LevelKind::storage) bits = std::max(bits, level.word_bits);
  }
  return bits;
}

int sum_bits(const Architecture& architecture) {
  return architecture.sum_bits > 0 ? architecture.sum_bits : widest_word(architecture);
}

double vector_operations_per_second(const Architecture& architecture) {
  return architecture.clock_hz * vector_operations_per_cycle(architecture);
}

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
      : architecture_(with_bandwidth(architecture)),
        assumes_memory_(!has_rate(architecture.levels.front())),
        memory_bandwidth_(device_of(architecture_).memory_bandwidth->value),
        constraints_(std::move(constraints)),
        tries_(tries) {}

  Time time(const KernelShape& shape) const override {
    std::vector<CountedProblem> problems = operator_problems(shape);
    const double vector_rate = vector_operations_per_second(architecture_);
    if (problems.empty()) {
      const Work work = count_work(shape);
      const double moved = (work.bytes() / memory_bandwidth_).value();
      const double worked = work.flops.value() / vector_rate;
      const double value = std::max(moved, worked);
      const Estimate seconds{.value = value,
                             .low = value,
                             .high = std::max(slowest_stream * moved, moved + worked),
                             .kind = Confidence::roofline};
      return {.seconds = seconds};
    }
    const TensorBits bits = tensor_bits(shape);
    for (CountedProblem& own : problems) {
      set_bits(own.problem, bits, architecture_.levels.back().word_bits, sum_bits(architecture_));
    }
    const double scores = attention_scores(shape, problems);
    const double array = (scores > 0 ? attention_cycles(problems) : cycles_of_all(problems)) / architecture_.clock_hz;
    const double vector = softmax_operations * scores / vector_rate;
    const Estimate seconds{.value = array + vector,
                           .low = std::max(low_share * array, vector),  // beside the products, at best
                           .high = high_share * (array + vector),
                           .kind = Confidence::extrapolated};
    return {.seconds = seconds, .mapped = true};
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> sentences;
    const int bits = architecture_.levels.back().word_bits;
    if (multiplies_integers(architecture_)) {
      sentences.push_back(
          bits < 16
              ? fmt::format("{} multiplies {}-bit integers only. Values in wider formats are converted to {} bits "
                            "on their way into the chip; -q int8 also stores the weights that way.",
                            architecture_.name, bits, bits)
              : fmt::format("{} multiplies {}-bit integers: they stand in for bf16 and fp16.", architecture_.name,
                            bits));
    }
    if (architecture_.vector.operations_per_cycle <= 0) {
      sentences.push_back(
          fmt::format("The design of {} has no vector unit. foretoken assumes {} operations per cycle, one for each "
                      "column of the array, for softmax, norms, activations, rotary embeddings and casts (`vector` in "
                      "the design changes it).",
                      architecture_.name, architecture_.levels.back().instances_x));
    }
    if (assumes_memory_) {
      sentences.push_back(fmt::format("The design of {} gives no bandwidth for {}. foretoken assumes {}.",
                                      architecture_.name, architecture_.levels.front().name,
                                      usual_memory(architecture_.levels.front())->what));
    }
    return sentences;
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

  double cycles_of_all(std::span<const CountedProblem> problems) const {
    double cycles = 0;
    for (const CountedProblem& own : problems) cycles += own.count * cycles_of(own.problem);
    return cycles;
  }

  // Queries by keys and scores by values in turn. Scores stay on the chip where that is faster.
  double attention_cycles(std::span<const CountedProblem> problems) const {
    ensure(problems.size() % 2 == 0, "attention is pairs of products");
    double cycles = 0;
    for (size_t i = 0; i < problems.size(); i += 2) {
      const Problem &scores = problems[i].problem, &values = problems[i + 1].problem;
      cycles += has_few_scores(scores, values) ? cycles_of_all(problems.subspan(i, 2))
                                               : problems[i].count * cycles_together(scores, values);
    }
    return cycles;
  }

  static bool has_few_scores(const Problem& scores, const Problem& values) {
    double words = 0;
    for (const Problem* product : {&scores, &values}) {
      for (const ProblemTensor& tensor : product->tensors) words += tensor_words(tensor, *product);
    }
    return 2 * tensor_words(scores.tensors.back(), scores) < few_scores * words;
  }

  double cycles_together(const Problem& scores, const Problem& values) const {
    std::vector<AcceleratorLayer> layers = {{.name = "scores", .problem = scores},
                                            {.name = "values", .problem = values, .from_previous = true}};
    std::vector<int64_t> key;
    double asked = 0, searched = 0;
    for (AcceleratorLayer& layer : layers) {
      asked += operations(layer.problem);
      for (ProblemDimension& dimension : layer.problem.dimensions) dimension.size = nearest_on_grid(dimension.size);
      searched += operations(layer.problem);
      add_to_key(key, layer.problem);
    }
    return remembered(std::move(key), [&] { return fused_cycles(layers); }) * asked / searched;
  }

  // Fused at the outermost level inside the chip that can hold what passes between the layers.
  double fused_cycles(std::span<const AcceleratorLayer> layers) const {
    FusionOptions options{.mapper = mapper_options(), .alone_tries = tries_, .most_layers = 2};
    options.mapper.most_tries = std::max<int64_t>(1, tries_ / ways_to_fuse);
    options.finalist_tries = tries_;
    double least = 0;
    for (options.level = 1; options.level + 1 < std::ssize(architecture_.levels); ++options.level) {
      if (architecture_.levels[options.level].kind != LevelKind::storage) continue;
      const FusionResult result = fuse_layers(architecture_, layers, constraints_, options);
      least = result.together.latency_cycles;
      if (result.groups.size() == 1) return least;
    }
    if (least > 0) return least;
    for (const AcceleratorLayer& layer : layers) least += searched_cycles(layer.problem);
    return least;
  }

  MapperOptions mapper_options() const {
    return {.objective = {.first = MappingMetric::latency, .second = MappingMetric::energy},
            .most_tries = tries_,
            .ends_when_settled = true};
  }

  static void add_to_key(std::vector<int64_t>& key, const Problem& problem) {
    for (const ProblemDimension& dimension : problem.dimensions) key.push_back(dimension.size);
    for (const ProblemTensor& tensor : problem.tensors) {
      for (const double bits : {tensor.bits, tensor.outside_bits, tensor.sum_bits}) {
        key.push_back(std::llround(1000 * bits));
      }
      for (const auto& rank : tensor.ranks) {
        for (const ProjectionTerm& term : rank) key.push_back(term.coefficient);
      }
    }
  }

  template <class Search>
  double remembered(std::vector<int64_t> key, const Search& search) const {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = cycles_.find(key); found != cycles_.end()) return found->second;
    }
    const double cycles = search();
    const std::lock_guard lock(mutex_);
    cycles_.emplace(std::move(key), cycles);
    return cycles;
  }

  double searched_cycles(const Problem& problem) const {
    std::vector<int64_t> key;
    add_to_key(key, problem);
    return remembered(std::move(key), [&] {
      const MapperResult result = search_mappings(architecture_, problem, constraints_(problem), mapper_options());
      if (!result.best) {
        throw InputError({.source = architecture_.name, .value = problem.name, .expected = result.reason});
      }
      return result.best->evaluation.latency_cycles();
    });
  }

  Architecture architecture_;
  bool assumes_memory_;
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

template <class Value>
Fact<Value> from_usual(Value value, const UsualMemory& usual) {
  return {.value = value, .source = fmt::format("not in the design: {}", usual.what), .assumed = true};
}

bool takes(const AcceleratorLevel& multipliers, bool integers, DType type) {
  if (8 * bytes_per_element(type) > multipliers.word_bits) return false;
  if (!integers) return true;
  const bool stands_in = type == DType::bf16 || type == DType::fp16;  // 16-bit integers
  return type == DType::int8 || type == DType::int4 || stands_in;
}

}  // namespace

Device device_of(const Architecture& given) {
  const Architecture architecture = with_bandwidth(given);
  const AcceleratorLevel& memory = architecture.levels.front();
  const AcceleratorLevel& multipliers = architecture.levels.back();
  const double words = memory.bandwidth.shared ? *memory.bandwidth.shared : *memory.bandwidth.read;
  Device device{.name = architecture.name, .title = architecture.name, .vendor = "designed", .kind = DeviceKind::npu};
  device.boost_clock = from_design(Hertz(architecture.clock_hz));
  const double memory_instances = static_cast<double>(instances(memory));
  const double bytes_per_word = memory.word_bits / 8.0;
  const BytesPerSecond bandwidth(words * memory_instances * bytes_per_word * architecture.clock_hz);
  const UsualMemory* usual = usual_memory(memory);
  device.memory_bandwidth = has_rate(given.levels.front()) ? from_design(bandwidth) : from_usual(bandwidth, *usual);
  if (memory.depth > 0) {
    device.memory = from_design(
        Bytes(static_cast<double>(memory.depth) * memory.words_per_access * bytes_per_word * memory_instances));
  } else if (usual != nullptr) {
    device.memory = from_usual(Bytes(usual->bytes), *usual);
  }
  const FlopsPerSecond peak(2 * operations_per_cycle(architecture) * architecture.clock_hz);
  for (size_t type = 0; type < dtype_count; ++type) {
    if (takes(multipliers, multiplies_integers(architecture), static_cast<DType>(type)))
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
  Device device = device_of(design.architecture);
  const double watts = design_power(design.architecture, [&](const Problem& problem) {
                         return design_constraints(design, problem);
                       }).limit_watts;
  constexpr double least_watts = 1e-6, most_watts = 5000;  // beyond which energies are missing or not those of a chip
  if (watts >= least_watts && watts <= most_watts) device.power_limit = from_design(Watts(watts));
  Json file = Json::object({{"name", device.name},
                            {"title", device.title},
                            {"vendor", device.vendor},
                            {"kind", device_kind_name(device.kind)}});
  if (!design.summary.empty()) file.set("note", design.summary);
  Json peaks = Json::object();
  for (const DeviceFact& fact : device_facts(device)) {
    Json entry = Json::object({{"value", fact.value}, {"source", fact.source}});
    if (fact.assumed) entry.set("assumed", true);
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

PowerCalibration design_power(const Architecture& given, const ConstraintsFor& constraints) {
  const Architecture architecture = with_bandwidth(given);
  const Device device = device_of(given);
  const AcceleratorLevel& memory = architecture.levels.front();
  const double byte_of_access = memory.words_per_access * memory.word_bits / 8.0;
  double leak = 0;
  for (const AcceleratorLevel& level : architecture.levels) {
    leak += static_cast<double>(instances(level)) * level.energy.leak_pj_per_cycle;
  }
  // On the chip alone, and beyond what leaks anyway.
  const auto joules_per_flop = [&](double bits) {
    constexpr int64_t side = 1024;  // large enough for every buffer to be used well
    Problem product = gemm_problem({.m = side, .n = side, .k = side});
    set_bits(product, {.input = bits, .weight = bits, .result = 16}, architecture.levels.back().word_bits,
             sum_bits(architecture));
    const MapperOptions options{.objective = {.first = MappingMetric::latency, .second = MappingMetric::energy},
                                .most_tries = 1000};
    const MapperResult found = search_mappings(architecture, product, constraints(product), options);
    if (!found.best) throw InputError({.source = architecture.name, .value = product.name, .expected = found.reason});
    const Evaluation& best = found.best->evaluation;
    const double inside = best.energy_pj - best.levels.front().access_pj - leak * best.cycles;
    return std::max(inside, best.compute_pj) * 1e-12 / (2 * best.operations);
  };
  constexpr double none = 1e-18;  // constants are above zero
  PowerCalibration power{.device = architecture.name + " (design)",
                         .source = "energies of the design",
                         .fitted_on = "mappings of a product of 1,024 cubed",
                         .bandwidth = device.memory_bandwidth->value.value(),
                         .idle_watts = std::max(none, leak * 1e-12 * architecture.clock_hz)};
  const auto peak = [&](DType type) { return device.peak_or_fallback(type).value_or(FlopsPerSecond(0)).value(); };
  power.peak_16 = peak(DType::bf16);
  power.peak_8 = peak(DType::fp8);
  const double operation_pj = architecture.vector.operation_pj > 0 ? architecture.vector.operation_pj
                                                                   : architecture.levels.back().energy.compute_pj;
  PowerConstants& own = power.constants;
  own[flop_joules] = std::max(none, joules_per_flop(16));
  own[fp8_flop_joules] = std::max(none, joules_per_flop(8));
  own[vector_flop_joules] = std::max(none, operation_pj * 1e-12);
  own[byte_joules] = std::max(none, (memory.energy.read_pj + memory.energy.fill_pj) / 2 * 1e-12 / byte_of_access);
  own[padded_byte_joules] = own[busy_watts] = own[attention_watts] = own[launch_seconds] = none;
  own[byte_chip_share] = 0.01;
  own[clock_exponent] = own[overlap_power] = own[streaming_share] = 1;
  own[burst_limit] = 4;  // never reached: the limit below is all parts at their full rate
  const double peak_rate = std::max(power.peak_16, power.peak_8);
  power.limit_watts = power.idle_watts + peak_rate * std::max(own[flop_joules], own[fp8_flop_joules]) +
                      power.bandwidth * own[byte_joules] +
                      vector_operations_per_second(architecture) * own[vector_flop_joules];
  return power;
}

}  // namespace foretoken
