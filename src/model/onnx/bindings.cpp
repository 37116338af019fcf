#include "model/onnx/bindings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// A dimension without a name is called after its place: "image.0".
std::string place_name(const OnnxValueInfo& input, size_t axis) {
  return fmt::format("{}.{}", input.name, axis);
}

bool is_batch_like(const std::string& symbol, size_t axis) {
  const std::string name = lower_case(symbol);
  return axis == 0 && (name.find("batch") != std::string::npos || name == "n" || name == "b" || name == "bs");
}

// What the user says of an input of which the file gives a type alone.
OnnxDims shape_of_bindings(const OnnxValueInfo& input, const OnnxOptions& options, const std::string& source,
                           std::set<std::string>& names) {
  OnnxDims dims;
  for (auto found = options.bind.find(place_name(input, 0)); found != options.bind.end();
       found = options.bind.find(place_name(input, dims.size()))) {
    names.insert(found->first);
    dims.push_back(found->second);
  }
  if (!dims.empty()) return dims;
  const std::string name = printable(input.name);
  throw InputError(
      {.source = source,
       .path = name,
       .value = "an input without a shape",
       .expected = fmt::format("a size for each of its dimensions: {{bind}} {}.0=SIZE,{}.1=SIZE", name, name)});
}

}  // namespace

std::vector<OnnxDims> bound_shapes(std::span<const OnnxValueInfo> inputs, const OnnxOptions& options,
                                   const std::string& source, std::vector<std::string>& assumed) {
  std::vector<OnnxDims> shapes;
  std::vector<std::string> unbound;
  std::set<std::string> names;
  for (const OnnxValueInfo& input : inputs) {
    OnnxDims dims;
    // Sequences and the like have no type of their own here, and no shape.
    if (!input.has_shape && input.type != OnnxType::undefined) dims = shape_of_bindings(input, options, source, names);
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const OnnxDimension& dimension = input.dims[axis];
      const std::string place = place_name(input, axis);
      const std::string& symbol = dimension.symbol.empty() ? place : dimension.symbol;
      names.insert(place);
      names.insert(symbol);
      const auto by_place = options.bind.find(place);
      const auto by_symbol = options.bind.find(symbol);
      if (by_place != options.bind.end()) {
        dims.push_back(by_place->second);
      } else if (dimension.size >= 0) {
        dims.push_back(dimension.size);
      } else if (by_symbol != options.bind.end()) {
        dims.push_back(by_symbol->second);
      } else if (options.batch_is_one && is_batch_like(symbol, axis)) {
        dims.push_back(1);
        if (std::find(assumed.begin(), assumed.end(), symbol) == assumed.end()) assumed.push_back(symbol);
      } else {
        if (std::find(unbound.begin(), unbound.end(), symbol) == unbound.end()) unbound.push_back(symbol);
        dims.push_back(1);
      }
    }
    if (!onnx_elements(dims)) {
      throw InputError({.source = source,
                        .path = printable(input.name),
                        .value = fmt::format("{}", fmt::join(dims, "x")),
                        .expected = "sizes from 0 and at most 2^46 elements"});
    }
    shapes.push_back(std::move(dims));
  }
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& [name, size] : options.bind) {
    if (names.contains(name)) continue;
    throw InputError({.source = source,
                      .path = "bind",
                      .value = fmt::format("{}={}", printable(name), size),
                      .expected = known.empty() ? "no binding: no input has dimensions"
                                                : fmt::format("one of {}", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }
  if (!unbound.empty()) {
    std::string flags;
    for (const std::string& symbol : unbound) flags += fmt::format(" {{bind}} {}=SIZE", printable(symbol));
    throw InputError({.source = source,
                      .path = "inputs",
                      .value = fmt::format("dimensions without a size: {}", fmt::join(unbound, ", ")),
                      .expected = fmt::format("a size for each:{}", flags)});
  }
  return shapes;
}

}  // namespace foretoken
