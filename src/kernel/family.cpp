#include "kernel/family.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/text.h"

namespace foretoken {
namespace {

std::optional<double> parse_choice(const KernelParameter& parameter, std::string_view text) {
  for (size_t i = 0; i < parameter.choices.size(); ++i) {
    if (equal_ignoring_case(parameter.choices[i], text)) return static_cast<double>(i);
  }
  return parameter.parse ? parameter.parse(text) : std::nullopt;
}

std::optional<double> parse_value(const KernelParameter& parameter, std::string_view text) {
  if (parameter.kind == ParameterKind::choice) return parse_choice(parameter, text);
  std::optional<double> value = parse_number(text);
  if (value && parameter.kind == ParameterKind::integer && !exact_integer(*value)) return std::nullopt;
  return value && parameter.range.holds(*value) ? value : std::nullopt;
}

std::string expectation(const KernelParameter& parameter) {
  switch (parameter.kind) {
    case ParameterKind::choice:
      return fmt::format("one of {}{}{}", fmt::join(parameter.choices, ", "), parameter.further.empty() ? "" : ", ",
                         parameter.further);
    case ParameterKind::number:
      return range_text(parameter.range);
    case ParameterKind::integer:
      break;
  }
  return range_text(
      Range<int64_t>{static_cast<int64_t>(parameter.range.least), static_cast<int64_t>(parameter.range.most)});
}

std::string suggestion(const KernelParameter& parameter, std::string_view text) {
  return nearest_name(text, parameter.choices).value_or("");
}

double fallback_value(const KernelParameter& parameter) {
  const std::optional<double> value = parse_value(parameter, *parameter.fallback);
  ensure(value.has_value(), "the fallback of a kernel parameter is a valid value");
  return *value;
}

}  // namespace

std::vector<std::string> kernel_family_names() {
  return kind_names(kernel_families());
}

const KernelFamily* find_kernel_family(std::string_view name) {
  for (const KernelFamily& family : kernel_families()) {
    if (equal_ignoring_case(family.name, name)) return &family;
  }
  return nullptr;
}

const KernelFamily& kernel_family(std::string_view name, InputProblem where) {
  if (const KernelFamily* family = find_kernel_family(name)) return *family;
  const std::vector<std::string> names = kernel_family_names();
  where.expected = fmt::format("a kernel family: {}", fmt::join(names, ", "));
  fail_unknown_name(name, names, std::move(where));
}

std::string_view kernel_variant(std::string_view text) {
  return text == "any" || text == "recurrence" || text == "convolution" ? std::string_view() : text;
}

KernelShape shape_from_texts(const KernelFamily& family,
                             std::span<const std::pair<std::string, std::string>> name_and_text) {
  std::vector<std::optional<double>> given(family.parameters.size());
  std::vector<std::string> texts(family.parameters.size());
  for (const auto& [name, text] : name_and_text) {
    const auto found = std::find_if(family.parameters.begin(), family.parameters.end(),
                                    [&name = name](const KernelParameter& p) { return p.name == name; });
    if (found == family.parameters.end()) {
      std::vector<std::string> known;
      for (const KernelParameter& parameter : family.parameters) known.push_back(parameter.name);
      throw InputError({.field = name,
                        .expected = fmt::format("a parameter of {}: {}", family.name, fmt::join(known, ", ")),
                        .suggestion = nearest_name(name, known).value_or("")});
    }
    const auto index = static_cast<size_t>(found - family.parameters.begin());
    // Flags take 4k where a file says 4000.
    const std::optional<double> scaled =
        found->kind == ParameterKind::integer ? parse_scaled_number(text) : std::nullopt;
    given[index] = parse_value(*found, scaled ? number_text(*scaled) : text);
    texts[index] = text;
    if (!given[index]) {
      throw InputError({.field = found->name,
                        .value = text.empty() ? "(empty)" : printable(text),
                        .expected = expectation(*found),
                        .suggestion = suggestion(*found, text)});
    }
  }
  std::vector<double> values;
  for (size_t i = 0; i < family.parameters.size(); ++i) {
    const KernelParameter& parameter = family.parameters[i];
    if (!given[i] && !parameter.fallback) {
      throw InputError({.field = parameter.name,
                        .value = "(not given)",
                        .expected = fmt::format("{} ({}), for example {}", expectation(parameter), parameter.help,
                                                parameter.example)});
    }
    values.push_back(given[i] ? *given[i] : fallback_value(parameter));
    if (texts[i].empty()) texts[i] = parameter.fallback.value_or("");
  }
  if (family.misfit) {
    if (const std::optional<Misfit> misfit = family.misfit(values)) {
      throw InputError({.field = family.parameters[misfit->parameter].name,
                        .value = printable(texts[misfit->parameter]),
                        .expected = misfit->expected});
    }
  }
  return family.shape(values);
}

KernelRowReader::KernelRowReader(const KernelFamily& family, const CsvReader& csv) : family_(&family) {
  std::vector<std::string> absent;
  for (const KernelParameter& parameter : family.parameters) {
    // column() complains about a required one that is absent.
    const std::optional<size_t> index =
        parameter.fallback ? csv.find_column(parameter.name) : std::optional(csv.column(parameter.name));
    columns_.push_back({.index = index});
    values_.push_back(index ? 0 : fallback_value(parameter));
    if (!index) absent.push_back(parameter.name);
  }
  for (const std::string& column : csv.columns()) {
    const bool known = std::any_of(family.parameters.begin(), family.parameters.end(),
                                   [&](const KernelParameter& parameter) { return parameter.name == column; });
    if (known) continue;
    if (const std::optional<std::string> near = nearest_name(column, absent)) {
      throw InputError(
          {.source = csv.source(),
           .line = 1,
           .path = "header",
           .value = printable(column),
           .expected = fmt::format("a column of {}, or one that is not easily mistaken for it", family.name),
           .suggestion = *near});
    }
  }
}

std::optional<KernelShape> KernelRowReader::read_if_expressible(const CsvReader& csv, std::string& why) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (!column.index) continue;
    const KernelParameter& parameter = family_->parameters[i];
    const std::string_view text = csv.cell(*column.index);
    if (parameter.kind != ParameterKind::choice) {
      const std::optional<double> value = parse_value(parameter, text);
      if (!value) csv.fail(*column.index, expectation(parameter));
      values_[i] = *value;
      continue;
    }
    if (column.seen && column.last_text == text) continue;
    const std::optional<double> value = parse_choice(parameter, text);
    column.seen = value.has_value();
    if (!value) {
      why = fmt::format("{} = {}: expected {}", parameter.name, printable(text), expectation(parameter));
      return std::nullopt;
    }
    column.last_text = text;
    values_[i] = *value;
  }
  if (family_->misfit) {
    if (const std::optional<Misfit> misfit = family_->misfit(values_)) {
      const Column& column = columns_[misfit->parameter];
      why = fmt::format("{} = {}: expected {}", family_->parameters[misfit->parameter].name,
                        column.index ? printable(csv.cell(*column.index)) : "(absent)", misfit->expected);
      return std::nullopt;
    }
  }
  return family_->shape(values_);
}

KernelShape KernelRowReader::read(const CsvReader& csv) {
  std::string why;
  if (std::optional<KernelShape> shape = read_if_expressible(csv, why)) return *shape;
  // Say it with the position of the cell: the first choice that cannot be read, else the parameter that does not fit.
  for (size_t i = 0; i < columns_.size(); ++i) {
    const KernelParameter& parameter = family_->parameters[i];
    if (!columns_[i].index || parameter.kind != ParameterKind::choice) continue;
    const std::string_view text = csv.cell(*columns_[i].index);
    if (!parse_choice(parameter, text))
      csv.fail(*columns_[i].index, expectation(parameter), suggestion(parameter, text));
  }
  const std::optional<Misfit> misfit = family_->misfit ? family_->misfit(values_) : std::nullopt;
  ensure(misfit.has_value(), "a row that cannot be read has a choice or a combination to blame");
  if (columns_[misfit->parameter].index) csv.fail(*columns_[misfit->parameter].index, misfit->expected);
  throw InputError({.source = csv.source(),
                    .line = csv.line(),
                    .path = fmt::format("row {}", csv.row()),
                    .value = why,
                    .expected = misfit->expected});
}

}  // namespace foretoken
