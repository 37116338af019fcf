// What a fit and a prediction need to know of a call besides its form: which calls share constants, and its raw sizes.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/forms/form.h"

namespace foretoken {

// Calls of one group share fitted constants: the kernel variant and the number formats, "fa3 fp8".
std::string call_group(const FormCall& call);
std::string call_formats(const FormCall& call);  // without the variant

// What of a call belongs to the model, where measurements come from a few models rather than a sweep of all sizes: the
// heads of a mixed batch. Empty for other families.
std::string call_model(const FormCall& call);

// The layer that a call belongs to, whatever its number of tokens: the sizes of its weights. Empty for families without
// weights.
std::string call_layer(const FormCall& call);

// Sizes of the call as base-two logarithms, for the trees of a measured device; unused places are zero.
inline constexpr size_t raw_feature_count = 8;
std::array<float, raw_feature_count> raw_features(const FormCall& call);

// The same sizes with their names and not as logarithms, in the same order: for people. Products are named "m x n".
struct NamedSize {
  std::string_view name;
  double value = 0;
  bool is_logarithmic = true;  // the raw feature is its logarithm, else the value itself
};
std::vector<NamedSize> named_sizes(const KernelShape& shape);

// The facts that forms use. `complete` is false where some are missing (clock, cache) or the device is no GPU of a
// known generation, whose kernels the forms describe: the device then has the roofline only.
struct TraitsOfDevice {
  DeviceTraits traits;
  bool complete = false;
};
TraitsOfDevice traits_of(const Device& device);

}  // namespace foretoken
