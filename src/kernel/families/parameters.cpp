#include "kernel/families/parameters.h"

namespace foretoken {
namespace {

constexpr double largest_size = 1e9;  // a product of two still fits an int64_t

std::optional<double> parse_scheme(std::string_view text) {
  const std::optional<Scheme> scheme = scheme_from_name(text);
  return scheme ? std::optional(static_cast<double>(*scheme)) : std::nullopt;
}

std::optional<double> parse_dtype(std::string_view text) {
  const std::optional<DType> type = dtype_from_name(text);
  return type ? std::optional(static_cast<double>(*type)) : std::nullopt;
}

std::optional<double> parse_yes_no(std::string_view text) {
  if (text == "1" || text == "true") return 1;
  if (text == "0" || text == "false") return 0;
  return std::nullopt;
}

}  // namespace

KernelParameter size_parameter(std::string name, std::string help, std::string example, double least) {
  return {
      .name = std::move(name), .help = std::move(help), .example = std::move(example), .range = {least, largest_size}};
}

KernelParameter size_parameter_or(std::string name, std::string help, std::string fallback, double least) {
  KernelParameter parameter = size_parameter(std::move(name), std::move(help), fallback, least);
  parameter.fallback = std::move(fallback);
  return parameter;
}

KernelParameter choice_parameter(std::string name, std::string help, std::vector<std::string> choices,
                                 std::optional<std::string> fallback) {
  std::string example = fallback.value_or(choices.front());
  return {.name = std::move(name),
          .kind = ParameterKind::choice,
          .help = std::move(help),
          .fallback = std::move(fallback),
          .example = std::move(example),
          .choices = std::move(choices)};
}

KernelParameter scheme_parameter(std::string name, std::string help) {
  KernelParameter parameter = choice_parameter(std::move(name), std::move(help), scheme_names(), "bf16");
  parameter.parse = parse_scheme;
  return parameter;
}

KernelParameter dtype_parameter(std::string name, std::string help, DType fallback) {
  KernelParameter parameter =
      choice_parameter(std::move(name), std::move(help), dtype_names(), std::string(dtype_name(fallback)));
  parameter.parse = parse_dtype;
  return parameter;
}

KernelParameter yes_no_parameter(std::string name, std::string help, bool fallback) {
  KernelParameter parameter =
      choice_parameter(std::move(name), std::move(help), {"no", "yes"}, fallback ? "yes" : "no");
  parameter.parse = parse_yes_no;
  return parameter;
}

KernelParameter variant_parameter() {
  KernelParameter parameter = choice_parameter(
      "kernel", "implementation; any = the one that engines usually run. An unknown name lists the known ones", {"any"},
      "any");
  parameter.parse = [](std::string_view) -> std::optional<double> { return 0; };
  return parameter;
}

}  // namespace foretoken
