// How errors of kernel predictions go together: what the interval of a sum of kernels needs besides their own.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "model/shapes.h"

namespace foretoken {

// Correlations of the errors of two different kernels on one device: 0 = independent, 1 = both off by the same share of
// their widths. Kernels of one form are wrong together more than those of different forms.
struct ErrorCorrelations {
  std::map<std::string, double, std::less<>> within;  // by form (forms/list.h), of two of its kernels
  double within_other = 0.4;                          // of forms that were not fitted
  double between = 0.4;                               // of kernels of different forms; the least of all
  std::string source, fitted_on;

  double within_form(std::string_view form) const;
};

// Half-widths of parts of one form, below and above their values.
struct FormWidths {
  std::string_view form;
  double below = 0, above = 0, below_squares = 0, above_squares = 0;
};

// A sum of predicted kernels in the making. The names of forms and the correlations must outlive it.
class KernelSum {
 public:
  explicit KernelSum(const ErrorCorrelations& correlations) : correlations_(&correlations) {}

  // All calls of one shape, which are off by the same share.
  void add(const Estimate& seconds, std::string_view form);
  Estimate total() const;
  std::span<const FormWidths> widths() const { return widths_; }

 private:
  const ErrorCorrelations* correlations_;
  std::vector<Estimate> parts_;
  std::vector<FormWidths> widths_;  // one for each form, in order of first use
};

// The name a kernel's errors are kept under: its form's, "collective", or "roofline" where it has no form.
std::string_view error_form(const KernelShape& shape, std::string_view variant);

// InputError where a correlation is not between 0 and 1, or one within a form is below the one between forms.
ErrorCorrelations read_error_correlations(const std::filesystem::path& path);
std::string error_correlations_json(const ErrorCorrelations& correlations);

}  // namespace foretoken
