// The flags that ask for one kernel of a serving engine or of expert parallelism, and what it takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/cli/flags/machine_flags.h"
#include "app/cli/grammar/options.h"
#include "report/kernel/kernel_call_report.h"

namespace foretoken {

struct CommunicationKernelFlags {
  static constexpr const char* expert_heading = "Expert traffic (--op dispatch, combine)";
  static const std::vector<std::string>& expert_operations();  // dispatch, combine

  std::string kernel = "nccl", tokens, dtype;
  bool eager = false;
  int64_t hidden = 7168, top_k = 8, experts = 256, processors = 0;

  void declare(Options& options);

  // Anything but NCCL's own collectives.
  bool wanted(const std::string& operation) const;
  static bool is_expert(const std::string& operation);
  // InputError for a flag that this kernel does not use.
  void check_given(const Options& options, const std::string& operation) const;

  // The engine's all-reduce; InputError for a kernel that is none.
  CommunicationCall all_reduce_call(int64_t ranks, double bytes) const;
  // InputError where no law covers the call, or the machine has not what the kernel needs.
  KernelCallReport all_reduces(const CollectiveMachine& machine, int64_t ranks,
                               const std::vector<int64_t>& sizes) const;
  KernelCallReport expert_traffic(const CollectiveMachine& machine, const std::string& operation, int64_t ranks) const;
};

}  // namespace foretoken
