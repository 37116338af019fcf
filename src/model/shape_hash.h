// A number by which equal shapes are found again.
#pragma once

#include <cstddef>

#include "model/shapes.h"

namespace foretoken {

// Equal shapes have the same; shapes that differ in sizes hardly ever do. Formats and switches are left out.
size_t shape_hash(const KernelShape& shape);

}  // namespace foretoken
