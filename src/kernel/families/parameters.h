// The parameters that many families share, and how their values become fields of a shape.
#pragma once

#include "kernel/family.h"

namespace foretoken {

// A count of at least `least`; required without a fallback.
KernelParameter size_parameter(std::string name, std::string help, std::string example, double least = 1);
KernelParameter size_parameter_or(std::string name, std::string help, std::string fallback, double least = 1);

KernelParameter scheme_parameter(std::string name, std::string help);                 // value: Scheme
KernelParameter dtype_parameter(std::string name, std::string help, DType fallback);  // value: DType
KernelParameter yes_no_parameter(std::string name, std::string help, bool fallback);  // value: 1 = yes
KernelParameter choice_parameter(std::string name, std::string help, std::vector<std::string> choices,
                                 std::optional<std::string> fallback);
// The variant that a framework picked, where it does not change what must be done: any text.
KernelParameter variant_parameter();

inline int64_t count(double value) {
  return static_cast<int64_t>(value);
}
inline Scheme scheme(double value) {
  return static_cast<Scheme>(static_cast<int>(value));
}
inline DType dtype(double value) {
  return static_cast<DType>(static_cast<int>(value));
}
inline bool yes(double value) {
  return value == 1;
}

}  // namespace foretoken
