#include "kernel/error_correlation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "kernel/forms/list.h"

namespace foretoken {
double ErrorCorrelations::within_form(std::string_view form) const {
  const auto found = within.find(form);
  return found == within.end() ? within_other : found->second;
}

void KernelSum::add(const Estimate& seconds, std::string_view form) {
  parts_.push_back(seconds);
  auto own = std::find_if(widths_.begin(), widths_.end(), [&](const FormWidths& one) { return one.form == form; });
  if (own == widths_.end()) own = widths_.insert(own, {.form = form});
  const double down = seconds.value - seconds.low, up = seconds.high - seconds.value;
  own->below += down;
  own->above += up;
  own->below_squares += down * down;
  own->above_squares += up * up;
}

// A half-width is proportional to a standard deviation, and
//   Var(sum) = sum_i w_i^2 + within_f sum_{i != j of one form f} w_i w_j + between sum_{other pairs} w_i w_j
Estimate KernelSum::total() const {
  Estimate sum = sum_of_independent(parts_);  // value and confidence do not depend on the correlations
  if (parts_.size() < 2) return sum;
  const double between = correlations_->between;
  double below = 0, above = 0, below_variance = 0, above_variance = 0;
  for (const FormWidths& one : widths_) {
    const double within = correlations_->within_form(one.form);
    below += one.below;
    above += one.above;
    below_variance += (1 - within) * one.below_squares + (within - between) * one.below * one.below;
    above_variance += (1 - within) * one.above_squares + (within - between) * one.above * one.above;
  }
  sum.low = sum.value - std::sqrt(below_variance + between * below * below);
  sum.high = sum.value + std::sqrt(above_variance + between * above * above);
  return sum;
}

std::string_view error_form(const KernelShape& shape, std::string_view variant) {
  if (std::holds_alternative<CollectiveShape>(shape)) return "collective";
  const FormKind* kind = form_kind_for(shape, variant);
  return kind == nullptr ? "roofline" : kind->name;
}

ErrorCorrelations read_error_correlations(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  view.allow_only({"about", "source", "fitted_on", "between", "within_other", "within"});
  ErrorCorrelations result{.source = view.at("source").string(), .fitted_on = view.at("fitted_on").string()};
  result.between = view.at("between").number({.least = 0, .most = 1});
  const auto within = [&](const JsonView& value) {
    const double correlation = value.number({.least = 0, .most = 1});
    if (correlation < result.between) value.fail("at least `between`: kernels of one form are wrong together");
    return correlation;
  };
  result.within_other = within(view.at("within_other"));
  for (const auto& [form, value] : view.at("within").members()) result.within.emplace(form, within(value));
  return result;
}

std::string error_correlations_json(const ErrorCorrelations& correlations) {
  Json within = Json::object();
  for (const auto& [form, value] : correlations.within) within.set(form, value);
  return Json::object({{"about",
                        "Correlation of the errors of two kernels on one device: of one form (`within`; "
                        "`within_other` where the form was not fitted) and of different forms (`between`)."},
                       {"source", correlations.source},
                       {"fitted_on", correlations.fitted_on},
                       {"between", correlations.between},
                       {"within_other", correlations.within_other},
                       {"within", std::move(within)}})
             .dump() +
         "\n";
}

}  // namespace foretoken
