#include "compose/profile/stack_writer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"
#include "compose/profile/layer.h"

namespace foretoken {
namespace {

using Names = std::vector<std::pair<std::string, int64_t>>;  // expressions with their value in the profiled step

double rounded(double microseconds) {
  return std::round(microseconds * 10) / 10;
}

// Sizes that the kernels of one operator may have, in its own terms.
Names norm_sizes(const ProfiledLayer& layer) {
  const int64_t rows = layer.batch * layer.q_len;
  return {{"rows * width", rows * layer.hidden}, {"rows", rows}, {"width", layer.hidden}};
}

Names activation_sizes(const ProfiledLayer& layer) {
  const int64_t rows = layer.batch * layer.q_len;
  return {{"rows * width", rows * layer.inter}, {"2 * rows * width", 2 * rows * layer.inter}, {"rows", rows}};
}

Names rotary_sizes(const ProfiledLayer& layer) {
  const int64_t tokens = layer.batch * layer.q_len, width = layer.head_dim;
  Names sizes;
  for (const auto& [name, heads] : {std::pair("heads", layer.heads), std::pair("kv_heads", layer.kv_heads)}) {
    sizes.emplace_back(fmt::format("tokens * {} * rotary_dim", name), tokens * heads * width);
    sizes.emplace_back(fmt::format("tokens * {} * rotary_dim / 2", name), tokens * heads * width / 2);
    sizes.emplace_back(fmt::format("tokens * {}", name), tokens * heads);
  }
  sizes.emplace_back("tokens * rotary_dim", tokens * width);
  return sizes;
}

Names cache_sizes(const ProfiledLayer& layer) {
  const int64_t token = layer.batch * layer.head_dim;
  return {{"batch * kv_len * kv_heads * head_dim", token * layer.kv_len * layer.kv_heads},
          {"batch * q_len * kv_heads * head_dim", token * layer.q_len * layer.kv_heads},
          {"batch * kv_len * heads * head_dim", token * layer.kv_len * layer.heads},
          {"batch * q_len * heads * head_dim", token * layer.q_len * layer.heads},
          {"batch * q_len * kv_len", layer.batch * layer.q_len * layer.kv_len}};
}

// Costs of one launch by class, from one step.
struct HostCosts {
  double elementwise = 0, multiply = 0, attention = 0;
};

HostCosts host_costs(const ProfiledLayer& layer) {
  std::vector<double> elementwise;
  for (const LayerPart* part : {&layer.post_attention_norm, &layer.activation, &layer.input_norm, &layer.rotary}) {
    for (const size_t kernel : part->kernels) {
      if (layer.intervals[kernel]) elementwise.push_back(*layer.intervals[kernel]);
    }
  }
  const auto multiplies = static_cast<double>(2 + layer.feed_in_multiplies + layer.qkv_sizes.size());
  const double multiply =
      layer.output_projection.host_us + layer.feed_in.host_us + layer.feed_out.host_us + layer.qkv.host_us;
  return {.elementwise = rounded(elementwise.empty() ? 0 : quantile(elementwise, 0.5)),
          .multiply = rounded(multiply / multiplies),
          .attention = rounded(layer.attention.host_us)};
}

// Writes the rules of one step.
class RuleWriter {
 public:
  RuleWriter(const ProfiledStep& step, const ProfiledLayer& layer, const HostCosts& costs, bool only,
             const KernelPredictor* predictor, std::vector<std::string>& notes)
      : step_(step), layer_(layer), costs_(costs), only_(only), predictor_(predictor), notes_(notes) {}

  std::vector<Json> rules() {
    start();
    norms();
    projections();
    activation();
    rotary();
    attention();
    sampling();
    return std::move(rules_);
  }

 private:
  Json when(Json pattern) const {
    if (layer_.phase == StepPhase::train) pattern.set("pass", "forward");
    if (only_) return pattern;
    switch (layer_.phase) {
      case StepPhase::decode:
        return pattern.set("phase", "decode");
      case StepPhase::train:
        return pattern.set("phase", "train");
      case StepPhase::prefill:
      case StepPhase::mixed:
        break;
    }
    return pattern.set("phase", Json::array({"prefill", "mixed"}));
  }

  // `launches` says how many of which class the emitted kernels are; what the part took beyond that is its own.
  void rule(Json pattern, std::vector<Json> emit, double host_us, double priced_us) {
    Json written = Json::object({{"when", when(std::move(pattern))}});
    if (host_us > priced_us) written.set("host_us", rounded(host_us - priced_us));
    written.set("emit", Json::array(std::move(emit)));
    rules_.push_back(std::move(written));
  }

  bool is_residual_sum(size_t kernel) const {
    const auto call = step_.kernels[kernel].call;
    return call && step_.operators[*call].name.find("add") != std::string::npos &&
           layer_.classes[kernel].variant == "torch_add" &&
           layer_.classes[kernel].elements == layer_.batch * layer_.q_len * layer_.hidden;
  }

  std::string expression(const KernelClass& kind, const Names& sizes) {
    for (const auto& [text, value] : sizes) {
      if (value == kind.elements) return text;
    }
    notes_.push_back(
        fmt::format("{}: a {} of {} elements matches no size of its operator, so it is written as a number",
                    step_.source, kind.variant, kind.elements));
    return fmt::format("{}", std::max<int64_t>(1, kind.elements));
  }

  // One kernel as a rule emits it; equal neighbours become `times`.
  void append(std::vector<Json>& emit, Json kernel) const {
    if (!emit.empty()) {
      Json last = emit.back();
      const Json* times = last.find("times");
      const int64_t before = times == nullptr ? 1 : times->integer();
      Json again = kernel;
      again.set("times", before + 1);
      Json same = kernel;
      if (times != nullptr) same.set("times", before);
      if (same.dump(0) == last.dump(0)) {
        emit.back() = std::move(again);
        return;
      }
    }
    emit.push_back(std::move(kernel));
  }

  // How much longer a kernel took than predicted; 1 where that is within a fifth, or where a launch matters as much.
  double correction(size_t kernel) const {
    const KernelClass& kind = layer_.classes[kernel];
    constexpr double long_us = 8, gap_us = 0.6;  // a predicted time holds the gap to the next kernel
    if (predictor_ == nullptr || step_.kernels[kernel].us < long_us || kind.elements <= 0) return 1;
    ElementwiseShape shape{.elements = kind.elements, .inputs = kind.inputs, .outputs = kind.outputs};
    const bool casts = kind.variant.starts_with("torch_cast");
    shape.dtype = casts || !kind.dtype ? layer_.dtype.value_or(DType::bf16) : *kind.dtype;
    const double predicted_us = predictor_->estimate(shape, kind.variant).seconds.value * 1e6;
    const double ratio = (step_.kernels[kernel].us + gap_us) / predicted_us;
    return ratio > 0.8 && ratio < 1.2 ? 1 : std::round(ratio * 20) / 20;
  }

  Json elementwise(size_t index, const Names& sizes, const std::string& name) {
    const KernelClass& kind = layer_.classes[index];
    Json kernel = Json::object({{"family", "elementwise"}, {"kernel", kind.variant}});
    const bool casts = kind.variant.starts_with("torch_cast");
    if (!casts && kind.dtype && layer_.dtype && *kind.dtype != *layer_.dtype) {
      kernel.set("dtype", dtype_name(*kind.dtype));
    }
    const double factor = correction(index);
    const std::string size = expression(kind, sizes);
    kernel.set("elements", factor == 1 ? size : fmt::format("{} * {}", number_text(factor), size));
    kernel.set("inputs", kind.inputs).set("outputs", kind.outputs);
    kernel.set("name", name);
    return kernel;
  }

  struct Emitted {
    std::vector<Json> kernels;
    double priced_us = 0;
    bool whole = false;  // a kernel does the operator's work as a whole
  };

  // Kernels that do a whole operator become `own`; the others are written one by one.
  Emitted emitted(const std::vector<size_t>& kernels, const Names& sizes, const std::string& name, const Json& own,
                  bool without_residual = false) {
    Emitted result;
    for (const size_t kernel : kernels) {
      const KernelClass& kind = layer_.classes[kernel];
      if (kind.role == KernelRole::driver) continue;
      if (without_residual && is_residual_sum(kernel)) continue;
      result.priced_us += costs_.elementwise;
      if (kind.role == KernelRole::elementwise) {
        append(result.kernels, elementwise(kernel, sizes, name));
        continue;
      }
      if (result.whole) continue;
      result.whole = true;
      Json whole = own;
      if (!kind.variant.empty()) whole.set("kernel", kind.variant);
      result.kernels.push_back(std::move(whole));
    }
    return result;
  }

  void start() {
    int64_t small = 0;
    double priced = 0;
    for (const size_t kernel : layer_.start.kernels) {
      const KernelRole role = layer_.classes[kernel].role;
      if (role == KernelRole::driver) continue;
      priced += costs_.elementwise;
      if (role != KernelRole::embed) ++small;
    }
    std::vector<Json> emit = {Json::object()};
    if (small > 0) {
      emit.push_back(Json::object({{"family", "elementwise"},
                                   {"kernel", "torch_mul_scalar"},
                                   {"dtype", "fp32"},
                                   {"times", small},
                                   {"elements", 1024},
                                   {"inputs", 1},
                                   {"outputs", 1},
                                   {"name", "positions"}}));
    }
    rule(Json::object({{"name", "embed_tokens"}}), std::move(emit), layer_.start.host_us, priced);
  }

  // A part that holds two norms does the work of a norm behind the block too.
  size_t norms_in(const LayerPart& part) const {
    size_t found = 0;
    for (const size_t kernel : part.kernels) {
      const KernelClass& kind = layer_.classes[kernel];
      const bool whole = kind.role == KernelRole::compiled || kind.role == KernelRole::normalize;
      if (whole || kind.variant == "torch_mean") ++found;
    }
    return found;
  }

  void norms() {
    if (norms_in(layer_.rotary) > 0) rule(Json::object({{"name", "qk_norm"}}), {}, 0, 0);
    if (norms_in(layer_.post_attention_norm) > 1) rule(Json::object({{"name", "attention_output_norm"}}), {}, 0, 0);
    if (norms_in(layer_.input_norm) > 1) rule(Json::object({{"name", "block_output_norm"}}), {}, 0, 0);
    const Names sizes = norm_sizes(layer_);
    const auto own = [&](const LayerPart& part) {
      const bool summed =
          std::any_of(part.kernels.begin(), part.kernels.end(), [&](size_t k) { return is_residual_sum(k); });
      return summed ? Json::object({{"residual", 0}}) : Json::object();
    };
    const LayerPart &after = layer_.post_attention_norm, &before = layer_.input_norm;
    Emitted part = emitted(after.kernels, sizes, "norm", own(after));
    rule(Json::object({{"name", "post_attention_norm"}}), std::move(part.kernels), after.host_us, part.priced_us);
    part = emitted(before.kernels, sizes, "norm", own(before));
    rule(Json::object({{"family", "norm"}, {"if", "residual = 1"}}), std::move(part.kernels), before.host_us,
         part.priced_us);
    part = emitted(before.kernels, sizes, "norm", Json::object(), true);
    rule(Json::object({{"family", "norm"}}), std::move(part.kernels), before.host_us - costs_.elementwise,
         part.priced_us);
  }

  void projections() {
    if (layer_.qkv_sizes.size() > 1) {
      const int64_t one = layer_.head_dim, all = (layer_.heads + 2 * layer_.kv_heads) * one;
      std::vector<Json> emit;
      for (const MultiplySize& size : layer_.qkv_sizes) {
        std::string share = fmt::format("n * {} / {}", size.n, all);
        if (size.n == layer_.heads * one) share = "n * heads / (heads + 2 * kv_heads)";
        if (size.n == layer_.kv_heads * one) share = "n * kv_heads / (heads + 2 * kv_heads)";
        if (size.n == layer_.kv_heads * one && layer_.heads == layer_.kv_heads) share = "n / 3";
        append(emit, Json::object({{"n", share}}));
      }
      rule(Json::object({{"name", "qkv_proj"}}), std::move(emit), layer_.qkv.host_us,
           costs_.multiply * static_cast<double>(layer_.qkv_sizes.size()));
    }
    if (layer_.feed_in_multiplies > 1) {
      const auto count = static_cast<int64_t>(layer_.feed_in_multiplies);
      rule(Json::object({{"name", "gate_up_proj"}}),
           {Json::object({{"n", fmt::format("n / {}", count)}, {"times", count}})}, layer_.feed_in.host_us,
           costs_.multiply * static_cast<double>(count));
    }
  }

  void activation() {
    Emitted part = emitted(layer_.activation.kernels, activation_sizes(layer_), "activation", Json::object());
    if (part.kernels.empty()) return;
    rule(Json::object({{"family", "activation"}}), std::move(part.kernels), layer_.activation.host_us, part.priced_us);
  }

  void rotary() {
    size_t whole = 0;
    for (const size_t kernel : layer_.rotary.kernels) {
      if (layer_.classes[kernel].role == KernelRole::compiled) ++whole;
    }
    Emitted part = emitted(layer_.rotary.kernels, rotary_sizes(layer_), "rope", Json::object());
    if (whole == 2 && part.kernels.size() == 1) {  // queries and keys apart
      Json queries = part.kernels[0], keys = part.kernels[0];
      queries.set("kv_heads", 0);
      keys.set("heads", "kv_heads").set("kv_heads", 0);
      part.kernels = {std::move(queries), std::move(keys)};
    }
    rule(Json::object({{"family", "rope"}}), std::move(part.kernels), layer_.rotary.host_us, part.priced_us);
  }

  void attention() {
    Emitted part = emitted(layer_.cache.kernels, cache_sizes(layer_), "cache", Json::object());
    Json call = Json::object();
    for (const size_t kernel : layer_.attention.kernels) {
      const std::string& variant = layer_.classes[kernel].variant;
      if (!variant.empty() && call.find("kernel") == nullptr) call.set("kernel", variant);
    }
    // Where nothing writes the cache in front of it, the attention does, or (train) there is none.
    if (!part.kernels.empty() || layer_.phase == StepPhase::train) call.set("writes_kv", 0);
    part.kernels.push_back(std::move(call));
    rule(Json::object({{"family", Json::array({"attention_prefill", "attention_decode", "attention_encoder"})}}),
         std::move(part.kernels), layer_.cache.host_us + layer_.attention.host_us, part.priced_us + costs_.attention);
  }

  void sampling() {
    for (const KernelClass& kind : layer_.classes) {
      if (kind.variant != "torch_argmax" || !kind.dtype) continue;
      rule(Json::object({{"name", "sampling"}}),
           {Json::object({{"kernel", "torch_argmax"}, {"dtype", dtype_name(*kind.dtype)}})}, 0, 0);
      return;
    }
  }

  const ProfiledStep& step_;
  const ProfiledLayer& layer_;
  const HostCosts& costs_;
  bool only_;
  const KernelPredictor* predictor_;
  std::vector<std::string>& notes_;
  std::vector<Json> rules_;
};

// Median time from the host's call to the kernel's start where the device was idle, and between kernels that waited.
struct DeviceGaps {
  double launch_us = 4, between_us = 1.2;
};

DeviceGaps device_gaps(const ProfiledStep& step) {
  std::vector<double> launches, gaps;
  std::map<int64_t, double> free_at;  // by stream
  for (const ProfiledKernel& kernel : step.kernels) {
    const auto before = free_at.find(kernel.stream);
    if (before != free_at.end() && kernel.launched_us) {
      const double free = before->second, gap = kernel.start_us - free;
      if (free < *kernel.launched_us) {
        launches.push_back(kernel.start_us - *kernel.launched_us);
      } else if (*kernel.launched_us + 20 < free && gap >= 0) {
        gaps.push_back(gap);
      }
    }
    free_at[kernel.stream] = kernel.start_us + kernel.us;
  }
  DeviceGaps result;
  constexpr size_t enough = 5;
  if (launches.size() >= enough) result.launch_us = std::max(0.0, quantile(launches, 0.5));
  // Kernel times hold 0.6 us of the gap to the next (data/measured/h200_sxm/launch.csv, graph_node).
  if (gaps.size() >= enough) result.between_us = std::max(0.0, quantile(gaps, 0.5) - 0.6);
  return result;
}

std::string device_text(const ProfiledStep& step) {
  return step.device.empty() ? "" : fmt::format(" on {}", step.device);
}

Json stack_head(const ProfiledStep& step, const StackImport& request) {
  Json file = Json::object({{"format", 1}, {"name", request.name}});
  if (!request.extends.empty()) file.set("extends", request.extends);
  file.set("summary", fmt::format("as profiled{}", device_text(step)));
  file.set("source", fmt::format("PyTorch profiler trace{} read by foretoken import profile; host times are medians "
                                 "between launches, less 4 us for each operator that the profiler recorded",
                                 device_text(step)));
  return file;
}

// Median host time of a launch for each kind of kernel that stands in the trace often enough.
Json launch_costs(std::span<const ProfiledStep> steps) {
  constexpr size_t enough = 5;
  std::map<std::string, std::vector<double>> times;
  for (const ProfiledStep& step : steps) {
    const std::vector<std::optional<double>> intervals = host_intervals_us(step);
    for (size_t i = 0; i < step.kernels.size(); ++i) {
      const ProfiledKernel& kernel = step.kernels[i];
      if (!intervals[i] || kernel.copies) continue;
      switch (classify_kernel(kernel, kernel.call ? &step.operators[*kernel.call] : nullptr).role) {
        case KernelRole::multiply:
          times["gemm"].push_back(*intervals[i]);
          break;
        case KernelRole::attention:
          for (const char* family : {"attention_prefill", "attention_decode", "attention_encoder"}) {
            times[family].push_back(*intervals[i]);
          }
          break;
        case KernelRole::normalize:
          times["norm"].push_back(*intervals[i]);
          break;
        default:
          times["default"].push_back(*intervals[i]);
      }
    }
  }
  Json costs = Json::object();
  for (const auto& [family, values] : times) {
    if (values.size() >= enough) costs.set(family, rounded(quantile(values, 0.5)));
  }
  return costs;
}

ImportedStack costs_from_profiles(std::span<const ProfiledStep> steps, const StackImport& request) {
  if (request.extends.empty()) {
    throw InputError({.field = "costs_only",
                      .value = "without {extends}",
                      .expected = "a stack that supplies the kernels and rules for these costs"});
  }
  const DeviceGaps gaps = device_gaps(steps[0]);
  ImportedStack result;
  result.file = stack_head(steps[0], request);
  result.file.set("costs", Json::object({{"eager_gap_us", rounded(gaps.between_us)},
                                         {"launch_us", rounded(gaps.launch_us)},
                                         {"host_us", launch_costs(steps)},
                                         {"host_low", 0.5},
                                         {"host_high", 1.5}}));
  for (const ProfiledStep& step : steps) {
    result.notes.push_back(
        fmt::format("{}: {} kernels; only launch costs and gaps are read, kernels and rules come from {}", step.source,
                    step.kernels.size(), request.extends));
  }
  return result;
}

}  // namespace

ImportedStack stack_from_profiles(std::span<const ProfiledStep> steps, const StackImport& request) {
  ensure(!steps.empty(), "a stack needs a step");
  if (request.costs_only) return costs_from_profiles(steps, request);
  ImportedStack result;
  std::vector<ProfiledLayer> layers;
  for (const ProfiledStep& step : steps) {
    layers.push_back(find_layer(step));
    const ProfiledLayer& layer = layers.back();
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
      if (layers[i].phase != layer.phase) continue;
      throw InputError({.source = step.source,
                        .value = fmt::format("a step of phase {}", step_phase_name(layer.phase)),
                        .expected = fmt::format("a different phase from that of {}", steps[i].source)});
    }
    result.notes.push_back(fmt::format("{}: {} of {} layers, {} sequences of {} new tokens, {} in the cache",
                                       step.source, step_phase_name(layer.phase), layer.layers, layer.batch,
                                       layer.q_len, layer.kv_len));
    if (layer.phase == StepPhase::train) {
      result.notes.push_back(fmt::format("{}: the backward pass is not read{}", step.source,
                                         request.extends.empty() ? "; {extends} a stack that has one" : ""));
    }
  }
  const HostCosts costs = host_costs(layers[0]);
  const DeviceGaps gaps = device_gaps(steps[0]);
  Json dispatch = Json::object();
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string_view kind =
        dispatch_name(request.dispatch.value_or(steps[i].graph ? Dispatch::graph : Dispatch::eager));
    for (const std::string& phase : step_phase_names()) {
      const bool same =
          phase == step_phase_name(layers[i].phase) || (phase == "mixed" && layers[i].phase == StepPhase::prefill);
      if (same || steps.size() == 1) dispatch.set(phase, kind);
    }
  }
  Json kernels =
      Json::object({{"gemm", "torch_linear"}, {"embedding", "torch_embedding"}, {"elementwise", "torch_add"}});
  std::vector<Json> rules;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (Json& rule :
         RuleWriter(steps[i], layers[i], costs, steps.size() == 1, request.predictor, result.notes).rules()) {
      rules.push_back(std::move(rule));
    }
  }
  result.file = stack_head(steps[0], request);
  result.file.set("dispatch", std::move(dispatch));
  result.file.set("costs", Json::object({{"graph_start_us", 20},
                                         {"kernel_gap_us", 0.6},
                                         {"graph_gap_us", 0.25},
                                         {"eager_gap_us", rounded(gaps.between_us)},
                                         {"launch_us", rounded(gaps.launch_us)},
                                         {"synchronize_us", 12},
                                         {"host_us", Json::object({{"default", costs.elementwise},
                                                                   {"gemm", costs.multiply},
                                                                   {"attention_prefill", costs.attention},
                                                                   {"attention_decode", costs.attention},
                                                                   {"attention_encoder", costs.attention}})},
                                         {"host_low", 0.5},
                                         {"host_high", 1.5}}));
  result.file.set("kernels", std::move(kernels));
  result.file.set("rules", Json::array(std::move(rules)));
  return result;
}

}  // namespace foretoken
