#include "app/cli/flags/communication_kernel_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/flags/choice_names.h"
#include "base/error.h"
#include "network/calibration/expert_kernels.h"
#include "network/calibration/stack_collectives.h"

namespace foretoken {
namespace {

std::vector<std::string> expert_kernel_names() {
  std::vector<std::string> names;
  for (const ExpertKernel& kernel : all_expert_kernels()) names.emplace_back(kernel.name);
  return names;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names = names_of(engine_kernels, {"nccl"});
  for (const std::string& name : expert_kernel_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> dispatch_dtypes() {
  std::vector<std::string> names;
  for (const ExpertKernel& kernel : all_expert_kernels()) {
    for (const std::string_view dtype : kernel.dispatch_dtypes) {
      if (std::find(names.begin(), names.end(), dtype) == names.end()) names.emplace_back(dtype);
    }
  }
  return names;
}

const ExpertKernel& expert_kernel(const std::string& name) {
  const ExpertKernel* kernel = find_expert_kernel(name);
  if (kernel == nullptr) {
    throw InputError({.source = "--kernel",
                      .value = name,
                      .expected = fmt::format("a kernel that carries tokens to experts: {}",
                                              fmt::join(expert_kernel_names(), ", "))});
  }
  return *kernel;
}

const CommunicationPredictor& predictor_of(const CollectiveMachine& machine) {
  if (machine.measured == nullptr) {
    throw InputError(
        {.source = "--kernel",
         .value = machine.model.name(),
         .expected = "a --node or --cluster whose device lists its links: kernel times are derived from them"});
  }
  return *machine.measured;
}

void check_ranks(int64_t ranks, int64_t most, const std::string& where) {
  if (ranks >= 2 && ranks <= most) return;
  throw InputError({.source = "--ranks",
                    .value = fmt::format("{}", ranks),
                    .expected = fmt::format("2 to {} ranks, {}", most, where)});
}

CommunicationTime time_of(const CommunicationPredictor& predictor, const CommunicationCall& call,
                          const std::string& kernel) {
  if (const std::optional<CommunicationTime> time = predictor.estimate(call)) return *time;
  throw InputError({.source = "--kernel",
                    .value = fmt::format("{} with {} ranks on {}", kernel, call.ranks, predictor.system().name),
                    .expected = fmt::format("a call within the range of the model {}", call.law)});
}

}  // namespace

const std::vector<std::string>& CommunicationKernelFlags::expert_operations() {
  static const std::vector<std::string> names = {"dispatch", "combine"};
  return names;
}

bool CommunicationKernelFlags::is_expert(const std::string& operation) {
  const std::vector<std::string>& all = expert_operations();
  return std::find(all.begin(), all.end(), operation) != all.end();
}

bool CommunicationKernelFlags::wanted(const std::string& operation) const {
  return kernel != "nccl" || is_expert(operation);
}

void CommunicationKernelFlags::declare(Options& options) {
  options.heading("Kernels");
  options.choice("--kernel", kernel, kernel_names(),
                 "Implementation to time: nccl; an engine's own all_reduce (vllm, sglang, trtllm); for dispatch and "
                 "combine deepep-low-latency, deepep-normal or trtllm");
  options.flag("--eager", eager,
               "Launch the engine's all_reduce kernels one by one instead of from a CUDA graph (vllm, sglang)");
  options.heading(expert_heading);
  options.text("--tokens", tokens,
               "Tokens per rank: one number (128), or a range that doubles from the first to the last (1:4096)");
  options.integer("--hidden", hidden, {.least = 1, .most = 1 << 20}, "Hidden size: values per token");
  options.integer("--top-k", top_k, {.least = 1, .most = 1 << 16}, "Experts per token");
  options.integer("--experts", experts, {.least = 1, .most = 1 << 20}, "Number of experts in the layer");
  options.integer("--sms", processors, {.least = 0, .most = 1 << 10},
                  "SMs that deepep-normal may use; 0 = 20, its own default");
  options.text(
      "--dtype", dtype,
      fmt::format(
          "Number format of dispatched tokens: {} [fp8 for DeepEP, bf16 for trtllm]. Tokens always return in bf16",
          fmt::join(dispatch_dtypes(), ", ")));
}

void CommunicationKernelFlags::check_given(const Options& options, const std::string& operation) const {
  std::vector<std::string> used = {"--cluster", "--node", "--nodes", "--ranks", "--op", "--kernel"};
  const bool expert = is_expert(operation);
  if (expert) {
    used.insert(used.end(), {"--tokens", "--hidden", "--top-k", "--experts"});
    if (operation == "dispatch") used.emplace_back("--dtype");
    if (expert_kernel(kernel).takes_processors) used.emplace_back("--sms");
  } else {
    used.insert(used.end(), {"--bytes", "--sizes", "--known"});
    if (kernel != "trtllm") used.emplace_back("--eager");  // nobody measured TensorRT-LLM's that way
  }
  options.allow_only(used, {}, fmt::format("{} by {}", operation, kernel));
}

CommunicationCall CommunicationKernelFlags::all_reduce_call(int64_t ranks, double bytes) const {
  if (std::find(std::begin(engine_kernels), std::end(engine_kernels), kernel) == std::end(engine_kernels)) {
    throw InputError({.source = "--kernel",
                      .value = kernel,
                      .expected = "--op dispatch or combine, because this kernel carries tokens to experts and back"});
  }
  return engine_all_reduce_call(kernel, eager, ranks, bytes);
}

KernelCallReport CommunicationKernelFlags::all_reduces(const CollectiveMachine& machine, int64_t ranks,
                                                       const std::vector<int64_t>& sizes) const {
  const CommunicationPredictor& predictor = predictor_of(machine);
  check_ranks(ranks, predictor.system().devices_per_domain, "all inside one node: these kernels cannot leave it");
  KernelCallReport report{.machine = machine.model.name(),
                          .operation = "all_reduce",
                          .kernel = kernel,
                          .note = eager ? "eager" : "from a CUDA graph",
                          .ranks = ranks,
                          .nodes = 1};
  for (const int64_t bytes : sizes) {
    if (bytes == 0) throw InputError({.source = "--bytes", .value = "0", .expected = "a message of at least one byte"});
    const CommunicationCall call = all_reduce_call(ranks, static_cast<double>(bytes));
    const CommunicationTime time = time_of(predictor, call, kernel);
    report.rows.push_back({.call = call,
                           .seconds = time.seconds,
                           .source = std::string(tier_name(time.tier)),
                           .basis = measured_basis(kernel + "'s all-reduce", time)});
  }
  return report;
}

KernelCallReport CommunicationKernelFlags::expert_traffic(const CollectiveMachine& machine,
                                                          const std::string& operation, int64_t ranks) const {
  const ExpertKernel& which = expert_kernel(kernel);
  const CommunicationPredictor& predictor = predictor_of(machine);
  const SystemTraits& system = predictor.system();
  if (system.is_host_link)
    throw InputError({.source = "--kernel",
                      .value = fmt::format("{} on {}", kernel, system.name),
                      .expected = "devices with NVLink, which the kernel uses to write into the memory of its peers"});
  const bool leaves_domain = which.law != "expert_all_to_all";
  check_ranks(
      ranks, leaves_domain ? machine.model.device_count() : system.devices_per_domain,
      leaves_domain ? "the devices of the machine" : "all inside one NVLink domain: this kernel cannot leave it");
  if (top_k > experts)
    throw InputError({.source = "--top-k",
                      .value = fmt::format("{}", top_k),
                      .expected = fmt::format("at most the number of --experts, {}", experts)});
  const std::string format = dtype.empty() ? std::string(which.dispatch_dtypes.front()) : dtype;
  if (std::find(which.dispatch_dtypes.begin(), which.dispatch_dtypes.end(), format) == which.dispatch_dtypes.end())
    throw InputError(
        {.source = "--dtype",
         .value = format,
         .expected = fmt::format("a format that {} can send: {}", kernel, fmt::join(which.dispatch_dtypes, ", "))});
  if (tokens.empty())
    throw InputError({.source = "--tokens",
                      .value = "not given",
                      .expected = "the number of tokens per rank, for example 128 or 1:4096"});
  const bool dispatches = operation == "dispatch";
  const int64_t nodes = (ranks + system.devices_per_domain - 1) / system.devices_per_domain;
  KernelCallReport report{.machine = machine.model.name(),
                          .operation = operation,
                          .kernel = kernel,
                          .note = fmt::format("hidden {}, top {} of {} experts, sent in {}", hidden, top_k, experts,
                                              dispatches ? format : "bf16"),
                          .ranks = ranks,
                          .nodes = nodes};
  for (const int64_t count : parse_sizes("--tokens", tokens, {.least = 1, .most = 1 << 20})) {
    const std::vector<CommunicationCall> calls =
        expert_calls(which, dispatches ? ExpertDirection::dispatch : ExpertDirection::combine, format, ranks, nodes,
                     {.tokens = count, .hidden = hidden, .top_k = top_k, .experts = experts, .processors = processors});
    std::vector<Estimate> parts;
    for (const CommunicationCall& call : calls) parts.push_back(time_of(predictor, call, kernel).seconds);
    const CommunicationTime last = time_of(predictor, calls.back(), kernel);
    report.rows.push_back({.call = calls.back(),
                           .seconds = sum_of_correlated(parts),
                           .source = std::string(tier_name(last.tier)),
                           .basis = measured_basis(fmt::format("{}'s {}", kernel, operation), last)});
  }
  return report;
}

}  // namespace foretoken
