// The fields of a shape by name, so that rules in data files can read and set them. Names are those of the kernel
// families' parameters (m, n, k, rows, width, heads, ...).
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_format.h"
#include "model/shapes.h"

namespace foretoken {

// Sizes as they are, yes/no as 1 and 0. Formats are not among them; see element_type().
std::vector<std::pair<std::string_view, double>> shape_fields(const KernelShape& shape);

// False when the shape has no such field. A size is rounded to a whole number.
bool set_shape_field(KernelShape& shape, std::string_view name, double value);

// What the activations are stored in; nothing for a collective.
std::optional<DType> element_type(const KernelShape& shape);
// Sets it, with the scheme of the weights where there are any; false for a shape without.
bool set_element_type(KernelShape& shape, DType type);

// A shape of this family with default sizes; nothing when no family has that name.
std::optional<KernelShape> default_shape(std::string_view family);

}  // namespace foretoken
