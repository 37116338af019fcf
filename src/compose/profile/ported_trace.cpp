#include "compose/profile/ported_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/profile/chakra_writer.h"
#include "compose/profile/kernel_class.h"
#include "compose/profile/kernel_shape.h"
#include "kernel/error_correlation.h"

namespace foretoken {
namespace {

constexpr std::string_view basis_names[] = {"estimates", "sheet", "kept"};

// How much longer a kernel takes on the other GPU.
struct Factor {
  Estimate ratio = exactly(1);
  double fixed_us = 0;  // of its time does not change: starting and ending a kernel takes as long everywhere
  PortBasis basis = PortBasis::kept;
  std::string_view form = "roofline";  // its errors go together with those of the form
  std::optional<double> predicted_us;  // on the GPU of the trace
};

double log_ratio(double a, double b) {
  return a > 0 && b > 0 ? std::log(a / b) : 0;
}

// A quotient of estimates whose errors are independent.
Estimate quotient(const Estimate& above, const Estimate& below) {
  const double value = above.value / below.value;
  const double down = std::hypot(log_ratio(above.value, above.low), log_ratio(below.high, below.value));
  const double up = std::hypot(log_ratio(above.high, above.value), log_ratio(below.value, below.low));
  return {.value = value,
          .low = value * std::exp(-down),
          .high = value * std::exp(up),
          .kind = std::max(above.kind, below.kind)};
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// What the multiply units of a kernel without sizes seem to take.
DType math_of(const ProfiledKernel& kernel, const KernelClass& kind) {
  if (contains_any(kernel.name, {"fp8", "e4m3", "e5m2", "Float8"})) return DType::fp8;
  return kind.dtype.value_or(DType::bf16);
}

class TracePorter {
 public:
  TracePorter(const ProfiledStep& step, const KernelPredictor& from, const KernelPredictor& to)
      : step_(step), from_(from), to_(to), same_device_(from.device().name == to.device().name) {}

  PortedTrace port() {
    for (const ProfiledKernel& kernel : step_.kernels) add(kernel);
    KernelSum total(to_.correlations());
    Estimate kept = exactly(0);
    for (const auto& [key, alike] : alike_) {
      if (std::get<0>(key).empty()) {
        kept.value += alike.value, kept.low += alike.low, kept.high += alike.high;
      } else {
        total.add(alike, std::get<0>(key));
      }
    }
    result_.ported_us = total.total();
    result_.ported_us.value += kept.value;
    result_.ported_us.low += kept.low;
    result_.ported_us.high += kept.high;
    for (auto& [name, one] : classes_) result_.classes.push_back(std::move(one));
    std::stable_sort(result_.classes.begin(), result_.classes.end(),
                     [](const PortedClass& a, const PortedClass& b) { return a.measured_us > b.measured_us; });
    place_in_time(kept);
    return std::move(result_);
  }

 private:
  // Nothing says how the links of the other machine differ.
  Estimate kept_time(double us) const {
    constexpr double links_differ = 1.5;
    if (same_device_) return exactly(us);
    return {.value = us, .low = us / links_differ, .high = us * links_differ, .kind = Confidence::roofline};
  }

  const ProfiledOperator* call_of(const ProfiledKernel& kernel) const {
    return kernel.call ? &step_.operators[*kernel.call] : nullptr;
  }

  void add(const ProfiledKernel& kernel) {
    const KernelClass kind = classify_kernel(kernel, call_of(kernel));
    const Factor factor = factor_of(kernel, kind);
    const double fixed = std::min(factor.fixed_us, kernel.us);
    Estimate ported = scaled(factor.ratio, kernel.us - fixed);
    for (double* bound : {&ported.value, &ported.low, &ported.high}) *bound += fixed;
    ported_.push_back(factor.basis == PortBasis::kept ? kept_time(kernel.us) : ported);
    kept_.push_back(factor.basis == PortBasis::kept);

    const std::string_view role = kernel_role_name(kind.role);
    const std::string name = kind.variant.empty() ? std::string(role) : fmt::format("{} ({})", role, kind.variant);
    PortedClass& one = classes_[{name, factor.basis}];
    one.name = name, one.basis = factor.basis;
    ++one.kernels;
    one.measured_us += kernel.us;
    // Kernels of one class are off together.
    const Estimate both[] = {one.ported_us, ported_.back()};
    one.ported_us = one.kernels == 1 ? ported_.back() : sum_of_correlated(both);

    // What the sheets leave open, all kernels of a role share.
    const std::string form(factor.basis == PortBasis::kept ? std::string_view() : factor.form);
    const bool by_sheet = factor.basis == PortBasis::sheet;
    Estimate& alike = by_sheet ? alike_[std::tuple(form, 0.0, std::string(role))]
                               : alike_[std::tuple(form, factor.ratio.value, kernel.name)];
    const Estimate sum[] = {alike, ported_.back()};
    alike = alike.value == 0 ? ported_.back() : sum_of_correlated(sum);

    ++result_.kernels;
    result_.measured_us += kernel.us;
    if (!factor.predicted_us) return;
    result_.sized_measured_us += kernel.us;
    result_.sized_predicted_us += *factor.predicted_us;
  }

  Factor factor_of(const ProfiledKernel& kernel, const KernelClass& kind) {
    const bool crosses_host = kernel.copies && contains_any(kernel.name, {"HtoD", "DtoH"});
    if (kind.role == KernelRole::communicate || kernel.message || crosses_host) return {};
    if (const auto shape = shape_of_kernel(kernel, call_of(kernel), kind)) {
      if (const auto factor = factor_by_estimates(kernel, *shape)) return *factor;
    }
    return factor_by_sheet(kernel, kind);
  }

  std::optional<Factor> factor_by_estimates(const ProfiledKernel& kernel, const ProfiledShape& shape) {
    try {
      const Estimate here = from_.estimate(shape.shape, shape.variant).seconds;
      const Estimate there = to_.estimate(shape.shape, shape.variant).seconds;
      if (here.value <= 0 || there.value <= 0) return std::nullopt;
      Factor factor{.ratio = same_device_ ? exactly(1) : quotient(there, here),
                    .basis = PortBasis::estimates,
                    .form = error_form(shape.shape, shape.variant)};
      // An operator of several kernels (split-K) is predicted once.
      const bool first = !kernel.call || kernel.call != last_sized_call_;
      last_sized_call_ = kernel.call;
      factor.predicted_us = first ? here.value * 1e6 : 0;
      return factor;
    } catch (const InputError&) {
      return std::nullopt;  // a format that one of the GPUs does not multiply in
    }
  }

  // Multiplies and attention by the peak rate, kernels that only move data by the bandwidth, others between the two.
  // The interval spans both; a fifth beyond is assumed, not fitted.
  Factor factor_by_sheet(const ProfiledKernel& kernel, const KernelClass& kind) const {
    constexpr double usual_start_us = 2, beyond = 1.2;
    Factor factor{.fixed_us = usual_start_us, .basis = PortBasis::sheet};
    if (same_device_) return factor;
    const Device &here = from_.device(), &there = to_.device();
    const double memory = here.memory_bandwidth->value.value() / there.memory_bandwidth->value.value();
    const DType math = math_of(kernel, kind);
    const auto rate_here = here.peak_or_fallback(math), rate_there = there.peak_or_fallback(math);
    const double compute = rate_here && rate_there ? rate_here->value() / rate_there->value() : memory;
    const bool multiplies = kind.role == KernelRole::multiply || kind.role == KernelRole::attention;
    const bool unknown = kind.role == KernelRole::unknown;
    factor.ratio = {.value = multiplies ? compute
                             : unknown  ? std::sqrt(compute * memory)
                                        : memory,
                    .low = std::min(compute, memory) / beyond,
                    .high = std::max(compute, memory) * beyond,
                    .kind = Confidence::roofline};
    return factor;
  }

  // The same launches and waits with other durations. The bounds stretch all kernels that change alike.
  void place_in_time(const Estimate& kept) {
    const ImportedChakra graph = chakra_from_profile(step_);
    const auto span = [&](double bound_us, double kept_us) {
      const double changing = result_.ported_us.value - kept.value;
      const double stretch = changing > 0 ? (bound_us - kept_us) / changing : 1;
      const double stretch_of_kept = kept.value > 0 ? kept_us / kept.value : 1;
      std::vector<double> durations;
      for (size_t i = 0; i < ported_.size(); ++i)
        durations.push_back(ported_[i].value * (kept_[i] ? stretch_of_kept : stretch));
      return end_of(graph, durations);
    };
    std::vector<double> recorded;
    for (const ProfiledKernel& kernel : step_.kernels) recorded.push_back(kernel.us);
    result_.measured_span_us = end_of(graph, recorded);
    result_.ported_span_us = {.value = span(result_.ported_us.value, kept.value),
                              .low = span(result_.ported_us.low, kept.low),
                              .high = span(result_.ported_us.high, kept.high),
                              .kind = result_.ported_us.kind};
  }

  // Nodes stand behind all they wait for, and their lanes take them in that order.
  static double end_of(const ImportedChakra& graph, const std::vector<double>& kernel_us) {
    std::map<uint64_t, double> own;
    for (size_t i = 0; i < kernel_us.size(); ++i) own[graph.kernel_nodes[i]] = kernel_us[i];
    std::vector<double> ends(graph.trace.nodes.size(), 0);
    std::map<std::pair<bool, int64_t>, double> lanes;
    double last = 0;
    for (const ChakraNode& node : graph.trace.nodes) {
      if (node.type == ChakraNodeType::metadata) continue;
      const auto kernel = own.find(node.id);
      double recorded = 0;
      int64_t number = 0;
      for (const ChakraAttribute& attribute : node.attributes) {
        if (attribute.name == fine_duration_attribute) recorded = number_value(attribute).value_or(0);
        if (attribute.name == "stream" || attribute.name == "tid") number = integer_value(attribute).value_or(0);
      }
      double& free_at = lanes[{kernel != own.end(), number}];
      double start = free_at;
      for (const uint64_t before : node.control_dependencies) start = std::max(start, ends[before]);
      for (const uint64_t before : node.data_dependencies) start = std::max(start, ends[before]);
      free_at = ends[node.id] = start + (kernel != own.end() ? kernel->second : recorded);
      last = std::max(last, free_at);
    }
    return last;
  }

  const ProfiledStep& step_;
  const KernelPredictor &from_, &to_;
  const bool same_device_;
  PortedTrace result_;
  std::vector<Estimate> ported_;  // microseconds by kernel
  std::vector<bool> kept_;
  std::map<std::pair<std::string, PortBasis>, PortedClass> classes_;
  // Kernels that are off by the same share: by form (empty = kept), factor and name, or by role.
  std::map<std::tuple<std::string, double, std::string>, Estimate> alike_;
  std::optional<size_t> last_sized_call_;
};

}  // namespace

std::string_view port_basis_name(PortBasis basis) {
  return basis_names[static_cast<size_t>(basis)];
}

double PortedTrace::measured_us_by(PortBasis basis) const {
  double sum = 0;
  for (const PortedClass& one : classes) sum += one.basis == basis ? one.measured_us : 0;
  return sum;
}

PortedTrace port_trace(const ProfiledStep& step, const KernelPredictor& from, const KernelPredictor& to) {
  return TracePorter(step, from, to).port();
}

}  // namespace foretoken
