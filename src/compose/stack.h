// A software stack as data: which kernels it runs for each operator, and what launching them costs.
// data/stacks/README.md describes the file; a user adds a stack without code.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expression.h"
#include "base/number_format.h"
#include "base/units.h"
#include "library/deployment.h"
#include "model/step.h"

namespace foretoken {

class JsonView;
class Library;

// How kernels reach the device.
//   fused      nothing between kernels: the sum of the kernels alone
//   graph      one captured CUDA graph
//   piecewise  graphs between the attention calls, which the host launches one by one
//   eager      the host launches every kernel
enum class Dispatch { fused, graph, piecewise, eager };
std::string_view dispatch_name(Dispatch dispatch);
std::optional<Dispatch> dispatch_from_name(std::string_view name);

// Attention of any kind: piecewise graphs are cut around it.
bool is_attention(const KernelShape& shape);

// What rules know of the step that an operator belongs to.
struct LoweredStep {
  StepPhase phase = StepPhase::decode;
  std::string_view model;       // model_type of the config
  std::string_view generation;  // of the GPU
};

// Which operators a rule is for. Empty parts fit all.
struct OperatorPattern {
  std::vector<std::string> names;     // of the operator, `*` at the end fits any rest
  std::vector<std::string> families;  // of its shape
  std::optional<Pass> pass;
  std::vector<StepPhase> phases;
  std::vector<std::string> models;       // model_type of the config
  std::vector<std::string> generations;  // of GPUs: Hopper, Blackwell
  std::optional<Expression> condition;   // on the operator's fields; not 0 = fits

  // `fields` is asked only where there is a condition.
  bool fits(const Operator& call, const LoweredStep& step, const Expression::Names& fields) const;
};

struct StackKernel {
  std::string name;    // for reports; empty = the operator's
  std::string family;  // empty = the operator's own shape, with the values below
  std::optional<std::string> variant;
  std::string host;            // key of StackCosts::host; empty = the family's
  std::optional<DType> dtype;  // nothing = the operator's
  bool waits = false;          // the host reads its result before it goes on
  Expression times = Expression::constant(1);
  std::vector<std::pair<std::string, Expression>> values;
};

struct StackRule {
  OperatorPattern when;
  std::vector<OperatorPattern> then;  // operators right after it that are consumed with it
  Seconds host;                       // of the operator besides its kernels' launches: module calls, views
  std::vector<StackKernel> emit;      // nothing: the operator costs no kernel of its own
};

// What lies between a client and the engine's queue. One process reads and tokenizes requests one after the other, so
// those sent together arrive apart. Another turns tokens into text, a piece for each request of a step: where steps
// make more pieces than it can send, clients see them late.
struct FrontCosts {
  Seconds latency;                // of each: network, hand-over, the first token's way back
  Seconds request;                // of that process, for each request
  Seconds token;                  // and for each token of its prompt
  Seconds piece;                  // of the process that sends answers, for each piece
  Seconds piece_low, piece_high;  // of 90% of hosts
  double latency_sd = 0;          // log; where calibration tells
};

// What launches cost where an engine runs its model as Python, neither compiled nor captured (--enforce-eager).
struct UncompiledHost {
  std::map<std::string, Seconds, std::less<>> host;  // over StackCosts::host
  double host_low = 1, host_high = 1;                // as in StackCosts
};

struct StackCosts {
  Seconds graph_start;                               // from replay to the first kernel, and its end to the host
  Seconds kernel_gap;                                // between two kernels of a graph, as measured kernel times hold it
  Seconds graph_gap;                                 // that much more between two different kernels of a graph
  Seconds eager_gap;                                 // that much more between two kernels the host has launched
  Seconds launch;                                    // from the host's call to the kernel's start
  Seconds piece;                                     // host: replay of one piece of a piecewise graph
  Seconds step_host;                                 // once per step, before the first kernel
  Seconds synchronize;                               // at the end of a step, and after a kernel that is waited for
  std::map<std::string, Seconds, std::less<>> host;  // of one launch by family or named class; "default"
  double kernels_low = 1, kernels_high = 1;  // 90% of measured kernel sums are within these factors of the predicted
                                             // one, beyond the kernels' own intervals: how well the rules fit
  double prompt_kernels_high = 1;            // the upper factor of steps with prompts, where it is the larger one
  // By phase: kernels inside the engine over the same ones measured alone; 1 where not named.
  std::map<StepPhase, double> kernel_factor;
  // By kind of kernel, on top of that; collectives have no factor by phase.
  double attention_factor = 1, expert_factor = 1, collective_factor = 1;
  FrontCosts front;
  double host_low = 1, host_high = 1;  // 90% of hosts need this much of those times
  std::optional<UncompiledHost> uncompiled;

  double most_of_kernels(StepPhase phase) const {
    const bool prompts = phase == StepPhase::prefill || phase == StepPhase::mixed;
    return prompts ? std::max(kernels_high, prompt_kernels_high) : kernels_high;
  }
};

// When the numbers of a stack were fitted or last changed, and the software that they hold for. A stack that extends
// another has its own; empty = its file does not say.
struct StackOrigin {
  std::string fitted_on;  // 2026-11-17
  std::string software;   // vLLM 0.10.2
};
StackOrigin read_stack_origin(const JsonView& root);
// "last fitted or changed 2026-11-17, for vLLM 0.10.2"; empty where nothing is known.
std::string origin_text(const StackOrigin& origin);

struct Stack {
  std::string name, summary, source;
  StackOrigin origin;
  std::map<StepPhase, Dispatch> dispatch;  // empty = every phase fused
  StackCosts costs;
  std::vector<int64_t> graph_sizes;                         // tokens that graphs are captured for, ascending
  std::map<std::string, std::string, std::less<>> kernels;  // family -> variant where a rule names none
  std::vector<StackRule> rules;
  std::map<std::string, std::string, std::less<>> on;  // platform (hardware/software.h) -> the stack that it is there
  bool tuned_linears = false;                          // see linear_kernels.h
  bool tuned_experts = false;                          // see expert_kernels.h
  bool split_mixed_attention = false;  // prompts and decodes of one step are read by two kernels, not one
  bool graphs_of_sequences = false;    // graph_sizes count decoding sequences, however many drafts each verifies
  bool asynchronous = false;           // the host prepares a step while the device runs the one before
  int64_t side_stream_tokens = 0;      // up to so many tokens, shared experts run beside the routed ones
  // How well its costs are known of a deployment that was measured (calibrated_stack.h); nothing = of any.
  std::optional<ConstantPosterior> posterior;

  double kernel_factor(StepPhase phase) const;
  // Of one kernel, or of a collective.
  double kernel_factor(StepPhase phase, const KernelShape& shape) const;

  // A stack that says how it runs some phases runs no others.
  bool runs(StepPhase phase) const { return dispatch.empty() || dispatch.contains(phase); }
  Dispatch dispatch_of(StepPhase phase) const;
  // The same for a step of so many tokens: beyond the largest captured size the host launches every kernel.
  Dispatch dispatch_of(StepPhase phase, int64_t tokens) const;
  // The captured size that a step of so many tokens runs at; nothing beyond the largest, or without sizes.
  std::optional<int64_t> padded_tokens(int64_t tokens) const;
};

// InputError with file, path, value, expectation.
// A stack that it extends is looked for among the `shipped` ones, then beside the file.
Stack read_stack(const std::filesystem::path& file, const std::filesystem::path& shipped = {});
// `find` gives the stack that the file extends: its rules come after the file's own, its other parts where the file has
// none.
using StackFinder = std::function<Stack(const std::string& name)>;
Stack parse_stack(std::string_view text, const std::string& source, const StackFinder& find = {});

// Stacks that ship, by name; a name with a slash or .json is a file.
class StackCatalogue {
 public:
  explicit StackCatalogue(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::vector<std::string> names() const;
  Stack stack(const std::string& name) const;  // InputError with the nearest name

 private:
  std::filesystem::path folder_;
};
StackCatalogue stacks_of(const Library& library);

}  // namespace foretoken
