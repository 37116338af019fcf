#include "compose/lowering.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "model/shape_fields.h"

namespace foretoken {
namespace {

using Fields = std::vector<std::pair<std::string_view, double>>;

std::optional<double> find_field(const Fields& fields, std::string_view name) {
  for (const auto& [known, value] : fields) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// Rules for operators of any name and family are about kernels that compute.
bool is_meant_for(const OperatorPattern& pattern, const Operator& call) {
  const bool names_one = !pattern.names.empty() || !pattern.families.empty();
  return names_one || !std::holds_alternative<CollectiveShape>(call.shape);
}

class Lowering {
 public:
  Lowering(const Stack& stack, const std::vector<Operator>& operators, const LoweredStep& step)
      : stack_(stack), operators_(operators), step_(step) {
    for (size_t i = 0; i < operators.size(); ++i) {
      const KernelShape& shape = operators[i].shape;
      if (std::holds_alternative<AttentionShape>(shape) || std::holds_alternative<MixedAttentionShape>(shape)) {
        attentions_.push_back(i);
      }
      if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
        if (operators[i].name == "tp_all_reduce") ranks_ = static_cast<double>(collective->ranks);
      }
    }
  }

  std::vector<Launch> run() {
    for (size_t at = 0; at < operators_.size();) at += place(at);
    return std::move(launches_);
  }

 private:
  // Writes the kernels of the operator at `at`; how many operators that took.
  size_t place(size_t at) {
    const Operator& call = operators_[at];
    const Fields fields = shape_fields(call.shape);
    const Expression::Names names = names_of(fields, at);
    for (const StackRule& rule : stack_.rules) {
      if (!is_meant_for(rule.when, call) || !rule.when.fits(call, step_, names) || !followed(rule, at)) continue;
      Seconds before = rule.host;
      for (const StackKernel& kernel : rule.emit) {
        emit(at, kernel, names, before);
        before = Seconds(0);
      }
      return 1 + rule.then.size();
    }
    const auto* batch = std::get_if<MixedAttentionShape>(&call.shape);
    if (stack_.split_mixed_attention && batch != nullptr && batch->decodes > 0 && batch->prompt_count() > 0) {
      launch(at, simplest_shape(prompts_of(*batch)));
      launch(at, simplest_shape(decodes_of(*batch)));
    } else {
      launch(at, call.shape);
    }
    return 1;
  }

  // One kernel for each call of the operator.
  void launch(size_t at, const KernelShape& shape) {
    launches_.push_back({.call = at,
                         .name = operators_[at].name,
                         .variant = variant_of(shape),
                         .shape = shape,
                         .count = operators_[at].count,
                         .host = host_of(std::string(family_name(shape)))});
  }

  bool followed(const StackRule& rule, size_t at) const {
    for (size_t i = 0; i < rule.then.size(); ++i) {
      if (at + i + 1 >= operators_.size()) return false;
      const Operator& next = operators_[at + i + 1];
      const Fields fields = shape_fields(next.shape);
      if (!rule.then[i].fits(next, step_, names_of(fields, at))) return false;
    }
    return true;
  }

  // Fields of the operator, `ranks` that share each layer, else fields of the nearest attention.
  Expression::Names names_of(const Fields& fields, size_t at) const {
    return [this, &fields, at](std::string_view name) -> std::optional<double> {
      if (const auto own = find_field(fields, name)) return own;
      if (name == "ranks") return ranks_;
      if (attentions_.empty()) return std::nullopt;
      const size_t nearest = *std::min_element(attentions_.begin(), attentions_.end(), [at](size_t a, size_t b) {
        return (a > at ? a - at : at - a) < (b > at ? b - at : at - b);
      });
      return find_field(shape_fields(operators_[nearest].shape), name);
    };
  }

  void emit(size_t at, const StackKernel& kernel, const Expression::Names& names, Seconds before) {
    const Operator& call = operators_[at];
    const auto times = static_cast<int64_t>(std::llround(kernel.times.value(names)));
    if (times <= 0) return;
    KernelShape shape = kernel.family.empty() ? call.shape : *default_shape(kernel.family);
    const std::optional<DType> type = kernel.dtype ? kernel.dtype : element_type(call.shape);
    if (type && (kernel.dtype || !kernel.family.empty())) set_element_type(shape, *type);
    for (const auto& [field, expression] : kernel.values) {
      const double value = expression.value(names);
      if (!set_shape_field(shape, field, value) || !(value >= 0) || !(value < 9e15)) {
        throw InputError({.source = fmt::format("stack {}", stack_.name),
                          .path = fmt::format("rule for {}, {}", call.name, field),
                          .value = expression.text(),
                          .expected = "a size of this kernel, 0 or more"});
      }
    }
    const auto back = stack_.costs.host.find("backward");
    const Seconds more = call.pass == Pass::backward && back != stack_.costs.host.end() ? back->second : Seconds(0);
    const std::string host = kernel.host.empty() ? std::string(family_name(shape)) : kernel.host;
    launches_.push_back({.call = at,
                         .name = kernel.name.empty() ? call.name : kernel.name,
                         .variant = kernel.variant ? *kernel.variant : variant_of(shape),
                         .shape = shape,
                         .count = call.count * times,
                         .host = host_of(host) + more,
                         .host_before = before,
                         .waits = kernel.waits});
  }

  std::string variant_of(const KernelShape& shape) const {
    const auto found = stack_.kernels.find(family_name(shape));
    return found == stack_.kernels.end() ? "" : found->second;
  }

  Seconds host_of(const std::string& kind) const {
    auto found = stack_.costs.host.find(kind);
    if (found == stack_.costs.host.end()) found = stack_.costs.host.find("default");
    return found == stack_.costs.host.end() ? Seconds(0) : found->second;
  }

  const Stack& stack_;
  const std::vector<Operator>& operators_;
  LoweredStep step_;
  std::vector<size_t> attentions_;
  double ranks_ = 1;
  std::vector<Launch> launches_;
};

}  // namespace

std::vector<Launch> lower(const Stack& stack, const std::vector<Operator>& operators, const LoweredStep& step) {
  return Lowering(stack, operators, step).run();
}

}  // namespace foretoken
