#include "report/kernel/stack_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr std::pair<StepPhase, std::string_view> phases[] = {{StepPhase::prefill, "prefill"},
                                                             {StepPhase::decode, "decode"},
                                                             {StepPhase::mixed, "mixed"},
                                                             {StepPhase::train, "train"}};

std::string_view dispatch_text(const Stack& stack, StepPhase phase) {
  return dispatch_name(stack.dispatch_of(phase));
}

std::string sizes_text(const Stack& stack) {
  if (stack.graph_sizes.empty()) return "any";
  return fmt::format("{} up to {} {}; above, every kernel is launched", counted(stack.graph_sizes.size(), "size"),
                     stack.graph_sizes.back(), stack.graphs_of_sequences ? "sequences" : "tokens");
}

// The parts of StackCosts with a value.
std::vector<std::pair<std::string, Seconds>> cost_list(const StackCosts& costs) {
  std::vector<std::pair<std::string, Seconds>> all = {{"step_host", costs.step_host},
                                                      {"graph_start", costs.graph_start},
                                                      {"graph_gap", costs.graph_gap},
                                                      {"eager_gap", costs.eager_gap},
                                                      {"launch", costs.launch},
                                                      {"piece", costs.piece},
                                                      {"synchronize", costs.synchronize},
                                                      {"kernel_gap", costs.kernel_gap},
                                                      {"front latency", costs.front.latency},
                                                      {"front request", costs.front.request},
                                                      {"front token", costs.front.token}};
  for (const auto& [kind, time] : costs.host) all.emplace_back("host " + kind, time);
  if (costs.uncompiled) {
    for (const auto& [kind, time] : costs.uncompiled->host) all.emplace_back("host uncompiled " + kind, time);
  }
  std::vector<std::pair<std::string, Seconds>> result;
  for (const auto& [name, time] : all) {
    if (time.value() > 0) result.emplace_back(name, time);
  }
  return result;
}

}  // namespace

std::string stack_list_text(const std::vector<Stack>& stacks) {
  Table table({{"name", Table::Align::left},
               {"prefill", Table::Align::left},
               {"decode", Table::Align::left},
               {"train", Table::Align::left},
               {"rules"},
               {"as of"},
               {"summary", Table::Align::left}});
  for (const Stack& stack : stacks) {
    table.add({stack.name, std::string(dispatch_text(stack, StepPhase::prefill)),
               std::string(dispatch_text(stack, StepPhase::decode)),
               std::string(dispatch_text(stack, StepPhase::train)), fmt::format("{}", stack.rules.size()),
               stack.origin.fitted_on, stack.summary});
  }
  return table.text();
}

Json stack_json(const Stack& stack) {
  Json dispatch = Json::object(), factors = Json::object(), kernels = Json::object(), costs = Json::object(),
       sizes = Json::array();
  for (const auto& [phase, name] : phases) dispatch.set(std::string(name), dispatch_text(stack, phase));
  for (const auto& [family, variant] : stack.kernels) kernels.set(family, variant);
  for (const auto& [name, time] : cost_list(stack.costs)) costs.set(name, time.value());
  for (const auto& [phase, name] : phases) factors.set(std::string(name), stack.kernel_factor(phase));
  for (const int64_t size : stack.graph_sizes) sizes.push(size);
  return Json::object({{"name", stack.name},
                       {"summary", stack.summary},
                       {"source", stack.source},
                       {"fitted_on", stack.origin.fitted_on},
                       {"software", stack.origin.software},
                       {"dispatch", std::move(dispatch)},
                       {"rules", stack.rules.size()},
                       {"kernels", std::move(kernels)},
                       {"graph_sizes", std::move(sizes)},
                       {"graphs_of_sequences", stack.graphs_of_sequences},
                       {"cost_seconds", std::move(costs)},
                       {"kernel_factor", std::move(factors)}});
}

Json stack_list_json(const std::vector<Stack>& stacks) {
  Json list = Json::array();
  for (const Stack& stack : stacks) list.push(stack_json(stack));
  return list;
}

std::string stack_text(const Stack& stack) {
  std::string text = wrap_lines(fmt::format("{}: {}", stack.name, stack.summary), page_width(), 2) + "\n";
  text += "how kernels are launched\n";
  for (const auto& [phase, name] : phases) text += fmt::format("  {:<9}{}\n", name, dispatch_text(stack, phase));
  text += fmt::format("  captured {}\n", sizes_text(stack));
  text += "launch costs\n";
  for (const auto& [name, time] : cost_list(stack.costs)) {
    text += fmt::format("  {:<24}{:>9}\n", name, duration_text(time.value()));
  }
  for (const auto& [phase, name] : phases) {
    if (stack.kernel_factor(phase) == 1) continue;
    text += fmt::format("  {:<24}{:>9} times as alone\n", fmt::format("kernels, {}", name),
                        number_text(stack.kernel_factor(phase)));
  }
  text += fmt::format("  {:<24}{} to {} times those of the host\n", "90% of hosts", number_text(stack.costs.host_low),
                      number_text(stack.costs.host_high));
  size_t emitted = 0;
  for (const StackRule& rule : stack.rules) emitted += rule.emit.size();
  text += stack.rules.empty()
              ? "no rules: every operator is one kernel\n"
              : fmt::format("{} with {}\n", counted(stack.rules.size(), "rule"), counted(emitted, "kernel"));
  for (const auto& [family, variant] : stack.kernels) text += fmt::format("  {:<24}{}\n", family, variant);
  if (const std::string origin = origin_text(stack.origin); !origin.empty()) text += origin + "\n";
  return text + wrap_lines("source: " + stack.source, page_width(), 2);
}

}  // namespace foretoken
