#include "report/training/training_stack_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

template <class Kind, class NameOf>
std::vector<std::string> names_of_kinds(const std::vector<Kind>& kinds, const NameOf& name_of) {
  std::vector<std::string> names;
  for (const Kind kind : kinds) names.emplace_back(name_of(kind));
  return names;
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push(name);
  return list;
}

std::string fit_basis_text(const TrainingStack& stack) {
  const RunInterval& interval = stack.interval;
  return fmt::format("{:.2f} to {:.2f} times the prediction, {}", interval.low, interval.high,
                     stack.runs.empty()    ? "assumed: its constants were not fitted to runs"
                     : interval.is_assumed ? "assumed: too few runs were published"
                                           : "90% of its published runs");
}

// The stacks of kernels that a training stack names, each with when they run.
struct NamedKernels {
  const char* key;
  const char* when;
  const std::optional<Stack> TrainingStack::*kernels;
};
constexpr NamedKernels named_kernels[] = {
    {"kernels", "", &TrainingStack::kernels},
    {"autocast_kernels", " with fp32 weights under autocast", &TrainingStack::autocast_kernels},
    {"adapter_kernels", " with fp32 adapters", &TrainingStack::adapter_kernels}};

std::string kernels_text(const TrainingStack& stack) {
  std::string text;
  for (const NamedKernels& one : named_kernels) {
    const std::optional<Stack>& kernels = stack.*one.kernels;
    if (kernels) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", kernels->name, one.when);
  }
  return text.empty() ? "one for each operator" : text + " (`foretoken stacks NAME` shows them)";
}

}  // namespace

std::string training_stack_list_text(const std::vector<TrainingStack>& stacks) {
  Table table({{"training software", Table::Align::left}, {"as of"}, {"summary", Table::Align::left}});
  for (const TrainingStack& stack : stacks) table.add({stack.name, stack.origin.fitted_on, stack.summary});
  return table.text();
}

Json training_stack_list_json(const std::vector<TrainingStack>& stacks) {
  Json list = Json::array();
  for (const TrainingStack& stack : stacks) {
    list.push(Json::object({{"name", stack.name},
                            {"summary", stack.summary},
                            {"fitted_on", stack.origin.fitted_on},
                            {"software", stack.origin.software}}));
  }
  return list;
}

std::string training_stack_text(const TrainingStack& stack) {
  std::string text = fmt::format("{}: {}\n", stack.name, stack.summary);
  text += fmt::format("  source      {}\n", stack.source);
  if (const std::string origin = origin_text(stack.origin); !origin.empty()) {
    text += fmt::format("  origin      {}\n", origin);
  }
  text += fmt::format("  schedules   {}\n", fmt::join(stack.schedules, ", "));
  text += fmt::format("  shardings   {}\n", fmt::join(names_of_kinds(stack.shardings, sharding_name), ", "));
  text += fmt::format("  recomputes  {}\n", fmt::join(names_of_kinds(stack.recomputes, recompute_name), ", "));
  text += fmt::format("  kernels     {}\n", kernels_text(stack));
  text += fmt::format("  interval    {}\n", fit_basis_text(stack));
  Table table({{"constant", Table::Align::left}, {"value"}, {"what it is", Table::Align::left}});
  size_t place = 0;
  for (const TrainingConstantFacts& facts : training_constant_facts()) {
    table.add({std::string(facts.name), fmt::format("{:.4g}", stack.constants[place++]), std::string(facts.reading)});
  }
  return wrap_lines(text, page_width(), 14) + "\n" + table.text();
}

Json training_stack_json(const TrainingStack& stack) {
  Json constants = Json::object();
  size_t place = 0;
  for (const TrainingConstantFacts& facts : training_constant_facts()) {
    constants.set(std::string(facts.name), stack.constants[place++]);
  }
  Json answer = Json::object({{"name", stack.name},
                              {"summary", stack.summary},
                              {"source", stack.source},
                              {"fitted_on", stack.origin.fitted_on},
                              {"software", stack.origin.software},
                              {"schedules", names_json(stack.schedules)},
                              {"shardings", names_json(names_of_kinds(stack.shardings, sharding_name))},
                              {"recomputes", names_json(names_of_kinds(stack.recomputes, recompute_name))},
                              {"interval", Json::object({{"low", stack.interval.low}, {"high", stack.interval.high}})},
                              {"constants", std::move(constants)}});
  for (const NamedKernels& one : named_kernels) {
    if (const std::optional<Stack>& kernels = stack.*one.kernels) answer.set(one.key, kernels->name);
  }
  return answer;
}

}  // namespace foretoken
