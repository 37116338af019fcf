#include "model/exchange_name.h"

namespace foretoken {
namespace {

constexpr std::string_view deepep_names[] = {"deepep", "deepep_high_throughput",
                                             "deepep_low_latency"};  // of ExchangeKernels

// As vLLM (--all2all-backend) and SGLang (--moe-a2a-backend) call them.
constexpr ExchangeName exchanges[] = {
    {"allgather_reducescatter", ExpertExchange::all_gather},
    {"all_to_all", ExpertExchange::all_to_all},
    {deepep_names[0], ExpertExchange::all_to_all},
    {deepep_names[1], ExpertExchange::all_to_all, ExchangeKernels::normal},
    {deepep_names[2], ExpertExchange::all_to_all, ExchangeKernels::low_latency},
    {"none", ExpertExchange::all_gather},
};

}  // namespace

std::span<const ExchangeName> expert_exchange_names() {
  return exchanges;
}

std::string_view deepep_name(ExchangeKernels kernels) {
  return deepep_names[static_cast<size_t>(kernels)];
}

}  // namespace foretoken
