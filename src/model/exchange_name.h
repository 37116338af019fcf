// What engines and their users call the ways that tokens take to experts of other ranks.
#pragma once

#include <span>
#include <string_view>

#include "model/step.h"

namespace foretoken {

struct ExchangeName {
  std::string_view name;
  ExpertExchange exchange;
  ExchangeKernels kernels = ExchangeKernels::by_tokens;
};

std::span<const ExchangeName> expert_exchange_names();

// Of DeepEP with these kernels.
std::string_view deepep_name(ExchangeKernels kernels);

}  // namespace foretoken
