#include "compose/profile/ported_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/profile/kernel_class.h"
#include "compose/profile/kernel_shape.h"
#include "kernel/error_correlation.h"
#include "kernel/ported_time.h"

namespace foretoken {
namespace {

constexpr std::string_view basis_names[] = {"estimates", "sheet", "split", "network", "kept"};

// How much longer a kernel takes on the other GPU.
struct Factor {
  Estimate ratio = exactly(1);
  double fixed_us = 0;  // of its time does not change: starting and ending a kernel takes as long everywhere
  PortBasis basis = PortBasis::kept;
  std::string_view form = "roofline";  // its errors go together with those of the form
  std::optional<double> predicted_us;  // on the GPU of the trace
};

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// What the multiply units of a kernel without sizes seem to take.
DType math_of(const ProfiledKernel& kernel, const KernelClass& kind) {
  if (contains_any(kernel.name, {"fp8", "e4m3", "e5m2", "Float8"})) return DType::fp8;
  return kind.dtype.value_or(DType::bf16);
}

bool crosses_host(const ProfiledKernel& kernel) {
  return kernel.copies && contains_any(kernel.name, {"HtoD", "DtoH"});
}

bool same_plan(const ParallelPlan& a, const ParallelPlan& b) {
  return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data;
}

// Microseconds of a message in the new job. What it took beyond the network's time was waiting, which stretches by
// `waits`; the interval also holds the case that the network was slower than we think, by as much in both jobs.
Estimate repriced(double measured_us, const MessageTimes& times, double waits, double correlation) {
  if (times.after.value == 0) return exactly(0);
  const double by_ratio = measured_us * times.after.value / times.before.value;
  const double waited = std::max(0.0, measured_us - times.before.value);
  const double by_wait = times.after.value + waited * waits;
  const double value = waited > 0 ? by_wait : by_ratio;
  const Estimate error = quotient_of(times.after, times.before, correlation);
  return {.value = value,
          .low = std::min(value, by_ratio) * error.low / error.value,
          .high = std::max(value, by_ratio) * error.high / error.value,
          .kind = error.kind};
}

class TracePorter {
 public:
  TracePorter(const ProfiledStep& step, const PortRequest& request)
      : step_(step),
        from_(request.from),
        to_(request.to),
        recorded_(request.recorded),
        wanted_(request.wanted),
        graph_(request.graph != nullptr ? *request.graph : chakra_from_profile(step)),
        micro_batches_(request.micro_batches),
        same_device_(from_.device().name == to_.device().name),
        same_job_(same_device_ && request.same_links && same_plan(recorded_.plan, wanted_.plan)),
        same_machine_(same_device_ && request.same_links),
        same_links_(same_machine_ && recorded_.plan.tensor == wanted_.plan.tensor),
        layers_(static_cast<double>(recorded_.plan.pipeline) / static_cast<double>(wanted_.plan.pipeline)),
        split_(step, recorded_.plan, wanted_.plan),
        prices_(recorded_, wanted_) {}

  PortedTrace port() {
    ported_.resize(step_.kernels.size());
    has_own_bounds_.resize(step_.kernels.size());
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      if (!step_.kernels[i].message) add_kernel(i);
    }
    const double stretch = work_us_ > 0 ? ported_work_us_ / work_us_ : 1;
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      if (step_.kernels[i].message) add_message(i, stretch);
    }
    KernelSum total(to_.correlations());
    Estimate messages = exactly(0);
    for (const auto& [key, alike] : alike_) {
      if (std::get<0>(key).empty()) {
        messages.value += alike.value, messages.low += alike.low, messages.high += alike.high;
      } else {
        total.add(alike, std::get<0>(key));
      }
    }
    kernels_us_ = total.total();
    result_.ported_us = kernels_us_;
    result_.ported_us.value += messages.value;
    result_.ported_us.low += messages.low;
    result_.ported_us.high += messages.high;
    for (auto& [name, one] : classes_) result_.classes.push_back(std::move(one));
    std::stable_sort(result_.classes.begin(), result_.classes.end(),
                     [](const PortedClass& a, const PortedClass& b) { return a.measured_us > b.measured_us; });
    place_in_time();
    return std::move(result_);
  }

 private:
  // Nothing says how the links of the other machine differ.
  Estimate kept_time(double us) const {
    constexpr double links_differ = 1.5;
    if (same_links_) return scaled_by_layers(exactly(us));
    return scaled_by_layers(
        {.value = us, .low = us / links_differ, .high = us * links_differ, .kind = Confidence::roofline});
  }

  // A stage of a longer pipeline has fewer layers. Embedding and head do not get fewer: a tenth is assumed for them.
  Estimate scaled_by_layers(const Estimate& us) const {
    constexpr double not_layers = 1.1;
    if (layers_ == 1) return us;
    Estimate result = scaled(us, layers_);
    result.low /= not_layers, result.high *= not_layers;
    result.kind = std::max(result.kind, Confidence::extrapolated);
    return result;
  }

  const ProfiledOperator* call_of(const ProfiledKernel& kernel) const {
    return kernel.call ? &step_.operators[*kernel.call] : nullptr;
  }

  void add_kernel(size_t index) {
    const ProfiledKernel& kernel = step_.kernels[index];
    const KernelClass kind = classify_kernel(kernel, call_of(kernel));
    const Factor factor = factor_of(kernel, kind);
    const double fixed = std::min(factor.fixed_us, kernel.us);
    Estimate ported = scaled(factor.ratio, kernel.us - fixed);
    for (double* bound : {&ported.value, &ported.low, &ported.high}) *bound += fixed;
    const bool is_kept = factor.basis == PortBasis::kept;
    const bool on_links = kind.role == KernelRole::communicate || crosses_host(kernel);
    ported_[index] = on_links ? kept_time(kernel.us) : scaled_by_layers(ported);
    has_own_bounds_[index] = is_kept;
    if (kind.role != KernelRole::communicate) {
      work_us_ += kernel.us;
      ported_work_us_ += is_kept ? kernel.us : ported.value;
    }
    const bool is_split = is_kept && layers_ != 1;
    count(index, kind, is_split ? PortBasis::split : factor.basis);

    // What the sheets leave open, all kernels of a role share.
    const std::string form(is_kept ? std::string_view() : factor.form);
    const bool by_class = factor.basis == PortBasis::sheet || factor.basis == PortBasis::split;
    join(by_class ? std::tuple(form, 0.0, std::string(kernel_role_name(kind.role)))
                  : std::tuple(form, factor.ratio.value, kernel.name),
         ported_[index]);
    if (!factor.predicted_us) return;
    result_.sized_measured_us += kernel.us;
    result_.sized_predicted_us += *factor.predicted_us;
  }

  // `stretch`: what the kernels of all ranks take more.
  void add_message(size_t index, double stretch) {
    const ProfiledKernel& kernel = step_.kernels[index];
    const KernelClass kind{.role = KernelRole::communicate,
                           .variant = std::string(collective_kind_name(kernel.message->kind))};
    const std::optional<MessageTimes> times = same_job_ ? std::nullopt : prices_.times_of(*kernel.message);
    has_own_bounds_[index] = true;
    if (!times) {
      ported_[index] = kept_time(kernel.us);
      count(index, kind, layers_ == 1 ? PortBasis::kept : PortBasis::split);
    } else {
      ported_[index] = message_time(kernel, *times, stretch);
      count(index, kind, PortBasis::network);
    }
    join({std::string(), 0.0, kernel.name}, ported_[index]);
  }

  Estimate message_time(const ProfiledKernel& kernel, const MessageTimes& times, double stretch) const {
    const int64_t before = recorded_.plan.pipeline, after = wanted_.plan.pipeline;
    const double alike = same_machine_ ? to_.correlations().within_form("collective") : 0;
    if (kernel.message->kind != CollectiveKind::send_recv || before < 2) {
      return scaled_by_layers(repriced(kernel.us, times, stretch, alike));
    }
    // As many micro-batches as before pass, so messages do not get fewer; the bubble of p stages is p - 1 times the
    // work of one, which is a p-th of all.
    const double bubble = layers_ * static_cast<double>(after - 1) / static_cast<double>(before - 1);
    return repriced(kernel.us, times, times.waits_in_pipeline ? stretch * bubble : stretch, alike);
  }

  void count(size_t index, const KernelClass& kind, PortBasis basis) {
    const std::string_view role = kernel_role_name(kind.role);
    const std::string name = kind.variant.empty() ? std::string(role) : fmt::format("{} ({})", role, kind.variant);
    PortedClass& one = classes_[{name, basis}];
    one.name = name, one.basis = basis, one.communicates = kind.role == KernelRole::communicate;
    ++one.kernels;
    one.measured_us += step_.kernels[index].us;
    // Kernels of one class are off together.
    const Estimate both[] = {one.ported_us, ported_[index]};
    one.ported_us = one.kernels == 1 ? ported_[index] : sum_of_correlated(both);
    ++result_.kernels;
    result_.measured_us += step_.kernels[index].us;
  }

  void join(const std::tuple<std::string, double, std::string>& key, const Estimate& us) {
    const auto [place, is_new] = alike_.try_emplace(key, us);
    const Estimate sum[] = {place->second, us};
    if (!is_new) place->second = sum_of_correlated(sum);
  }

  Factor factor_of(const ProfiledKernel& kernel, const KernelClass& kind) {
    if (kind.role == KernelRole::communicate || crosses_host(kernel)) return {};
    const std::optional<ProfiledShape> shape = shape_of_kernel(kernel, call_of(kernel), kind);
    const KernelWork work = split_.work_of(kernel, call_of(kernel), kind, shape);
    if (shape && work.shape) {
      if (auto factor = factor_by_estimates(kernel, *shape, *work.shape)) {
        factor->ratio = product_of_independent(factor->ratio, work.share);
        return *factor;
      }
    }
    Factor factor = factor_by_sheet(kernel, kind);
    factor.ratio = product_of_independent(factor.ratio, work.share);
    if (same_device_) factor.basis = factor.ratio.value == 1 ? PortBasis::kept : PortBasis::split;
    return factor;
  }

  // `shape` is what the kernel did, `wanted` what it has to do.
  std::optional<Factor> factor_by_estimates(const ProfiledKernel& kernel, const ProfiledShape& shape,
                                            const ProfiledShape& wanted) {
    try {
      const Estimate here = from_.estimate(shape.shape, shape.variant).seconds;
      const Estimate there = to_.estimate(wanted.shape, wanted.variant).seconds;
      if (here.value <= 0 || there.value <= 0) return std::nullopt;
      const double alike = to_.correlations().within_form(error_form(shape.shape, shape.variant));
      const bool is_same = same_device_ && shape.shape == wanted.shape;
      const Estimate ratio = same_device_ ? quotient_of(there, here, alike) : port_ratio(there, here);
      Factor factor{.ratio = is_same ? exactly(1) : ratio,
                    .basis = is_same ? PortBasis::kept : PortBasis::estimates,
                    .form = error_form(shape.shape, shape.variant)};
      // Less of the same work on the same GPU takes no longer.
      if (same_device_ && factor.ratio.value <= 1) factor.ratio.high = std::min(factor.ratio.high, 1.0);
      if (same_device_ && factor.ratio.value >= 1) factor.ratio.low = std::max(factor.ratio.low, 1.0);
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

  // The same launches and waits with other durations. The bounds stretch all kernels alike.
  void place_in_time() {
    double kernels_us = 0;
    for (size_t i = 0; i < ported_.size(); ++i) kernels_us += has_own_bounds_[i] ? 0 : ported_[i].value;
    const auto span = [&](double Estimate::*bound) {
      const double stretch = kernels_us > 0 ? kernels_us_.*bound / kernels_us : 1;
      std::vector<double> durations;
      for (size_t i = 0; i < ported_.size(); ++i)
        durations.push_back(has_own_bounds_[i] ? ported_[i].*bound : ported_[i].value * stretch);
      return end_of(graph_, durations, layers_);
    };
    std::vector<double> recorded;
    for (const ProfiledKernel& kernel : step_.kernels) recorded.push_back(kernel.us);
    result_.measured_span_us = end_of(graph_, recorded, 1);
    const Estimate work{.value = span(&Estimate::value),
                        .low = span(&Estimate::low),
                        .high = span(&Estimate::high),
                        .kind = result_.ported_us.kind};
    result_.bubble_us = new_bubble(work);
    result_.tensor_us = new_tensor_messages();
    result_.gradients_us = new_gradients();
    result_.assumes_one_micro_batch = result_.gradients_us.value > 0 && micro_batches_ < 1;
    const Estimate parts[] = {work, result_.bubble_us, result_.tensor_us, result_.gradients_us};
    const bool adds = result_.bubble_us.value > 0 || result_.tensor_us.value > 0 || result_.gradients_us.value > 0;
    result_.ported_span_us = adds ? sum_of_correlated(parts) : work;
    result_.lacks_backward = gets_replicas() && backward_us() == 0;
    Confidence& kind = result_.ported_span_us.kind;
    if (result_.lacks_backward) kind = std::max(kind, Confidence::extrapolated);
  }

  // 1F1B: every stage waits for one micro-batch's work of each other stage, and for its messages there and back.
  Estimate new_bubble(const Estimate& work) const {
    const int64_t stages = wanted_.plan.pipeline;
    if (recorded_.plan.pipeline > 1 || stages < 2 || micro_batches_ < 1) return exactly(0);
    Estimate bubble = scaled(work, static_cast<double>(stages - 1) / static_cast<double>(micro_batches_));
    const std::optional<double> bytes = split_.hidden_bytes();
    if (!bytes || wanted_.network == nullptr) return bubble;
    const CollectiveShape send{
        .kind = CollectiveKind::send_recv, .axis = ParallelAxis::pipeline, .ranks = 2, .bytes = *bytes};
    const Estimate sends = scaled(wanted_.network->seconds({.shape = send}), 1e6 * 2 * static_cast<double>(stages - 1));
    const Estimate both[] = {bubble, sends};
    return sum_of_correlated(both);
  }

  // All-reduces of the hidden state after attention and after the feed-forward, forward and backward, that everybody
  // waits for (arXiv 1909.08053, section 3); stacks that run them beside multiplies wait for half of them or so.
  Estimate new_tensor_messages() const {
    const std::optional<double> bytes = split_.hidden_bytes();
    if (recorded_.plan.tensor > 1 || wanted_.plan.tensor < 2 || !bytes || wanted_.network == nullptr) return exactly(0);
    constexpr double for_each_attention = 2, hidden = 0.5;
    const CollectiveShape shape{.kind = CollectiveKind::all_reduce,
                                .axis = ParallelAxis::tensor,
                                .ranks = wanted_.plan.tensor,
                                .bytes = *bytes};
    const double count = for_each_attention * static_cast<double>(split_.attention_passes()) * layers_;
    Estimate all = scaled(wanted_.network->seconds({.shape = shape}), 1e6 * count);
    all.low *= hidden;
    all.kind = std::max(all.kind, Confidence::extrapolated);
    return all;
  }

  bool gets_replicas() const { return recorded_.plan.data < 2 && wanted_.plan.data > 1; }

  double backward_us() const {
    double sum = 0;
    for (size_t i = 0; i < ported_.size(); ++i) sum += step_.kernels[i].backward ? ported_[i].value : 0;
    return sum;
  }

  // One all-reduce of the gradients beside the backward pass, as DistributedDataParallel does it: at least the last
  // bucket of 25 MiB comes after it, at most everything.
  Estimate new_gradients() const {
    const double backward = backward_us();
    if (!gets_replicas() || wanted_.network == nullptr || backward == 0) return exactly(0);
    constexpr double bucket = 25.0 * (1 << 20);
    const double passes = static_cast<double>(std::max<int64_t>(1, micro_batches_));
    const double bytes = split_.weight_bytes() / passes * layers_;
    const auto all_reduce = [&](double part) {
      const CollectiveShape shape{
          .kind = CollectiveKind::all_reduce, .axis = ParallelAxis::data, .ranks = wanted_.plan.data, .bytes = part};
      return scaled(wanted_.network->seconds({.shape = shape}), 1e6);
    };
    const Estimate whole = all_reduce(bytes), last = all_reduce(std::min(bytes, bucket));
    return {.value = std::max(last.value, whole.value - backward / passes),
            .low = last.low,
            .high = whole.high,
            .kind = std::max(whole.kind, Confidence::extrapolated)};
  }

  // Nodes stand behind all they wait for, and their lanes take them in that order.
  // `layers`: share of the recorded launches and gaps that are left.
  static double end_of(const ImportedChakra& graph, const std::vector<double>& kernel_us, double layers) {
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
      free_at = ends[node.id] = start + (kernel != own.end() ? kernel->second : recorded * layers);
      last = std::max(last, free_at);
    }
    return last;
  }

  const ProfiledStep& step_;
  const KernelPredictor &from_, &to_;
  const TraceJob recorded_, wanted_;
  const ImportedChakra graph_;
  const int64_t micro_batches_;
  const bool same_device_, same_job_, same_machine_;
  const bool same_links_;  // also between the ranks of a group
  const double layers_;    // of those that were recorded, on one stage
  const KernelSplit split_;
  const MessagePrices prices_;
  PortedTrace result_;
  std::vector<Estimate> ported_;             // microseconds by kernel
  std::vector<bool> has_own_bounds_;         // messages, and kernels that do not change
  Estimate kernels_us_;                      // of the others
  double work_us_ = 0, ported_work_us_ = 0;  // of kernels that do not communicate, layers aside
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

namespace {

// What a plan needs that the trace does not show.
void check_request(const ProfiledStep& step, const PortRequest& request) {
  const ParallelPlan &recorded = request.recorded.plan, &wanted = request.wanted.plan;
  const KernelSplit split(step, recorded, wanted);
  if (recorded.tensor == 1 && wanted.tensor > 1 && (!split.hidden_bytes() || split.attention_passes() == 0)) {
    throw InputError({.source = step.source,
                      .path = "tensor parallelism",
                      .value = split.hidden_bytes() ? "1 in the trace, which has no attention kernels"
                                                    : "1 in the trace, which has no sizes",
                      .expected = "a trace with record_shapes=True and attention in kernels of its own, so that layers "
                                  "can be counted; or a trace with tensor parallelism of 2 or more"});
  }
  if (recorded.pipeline == 1 && wanted.pipeline > 1 && request.micro_batches < 1) {
    throw InputError({.source = step.source,
                      .path = "micro-batches",
                      .value = "not given",
                      .expected = "the number of micro-batches in the trace, which sets the pipeline's bubble"});
  }
  const bool sizes = std::any_of(step.operators.begin(), step.operators.end(),
                                 [](const ProfiledOperator& call) { return !call.dims.empty(); });
  if (recorded.data == 1 && wanted.data > 1 && !sizes) {
    throw InputError({.source = step.source,
                      .path = "data parallelism",
                      .value = "1 in the trace, and the trace has no sizes",
                      .expected = "a trace with record_shapes=True, so that the size of the gradients is known"});
  }
}

}  // namespace

PortedTrace port_trace(const ProfiledStep& step, const PortRequest& request) {
  check_request(step, request);
  return TracePorter(step, request).port();
}

}  // namespace foretoken
