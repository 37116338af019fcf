// Rows that a DRAM opens for a tensor, from the order in which a mapping asks for its words.
//
// Tensors lie row-major, the last rank closest. Rows stay open until their bank needs another one: turns of a loop find
// the rows of the turn before open where those are not more than the banks. Tensors do not disturb each other, as if
// they lay in banks of their own.
#pragma once

#include <optional>
#include <string_view>

#include "accelerator/architecture.h"
#include "accelerator/evaluation_plan.h"
#include "accelerator/flat_nest.h"
#include "accelerator/tile.h"

namespace foretoken {

// Rows of a usual module of a kind of memory: DDR3, DDR4, LPDDR4, HBM2, HBM3. Nothing for others.
std::optional<DramRows> usual_rows(std::string_view component);

// Rows opened to move `words` elements of a tensor to or from tiles of `child`. `tile` is one of those;
// `element_bytes` are those of an element in the memory.
double rows_opened(const EvaluationPlan& plan, const FlatNest& nest, int tensor, int child, const TileSizes& tile,
                   const DramRows& rows, double element_bytes, double words);

// Time to open so many rows and move words that alone take `moving_cycles`.
double cycles_with_rows(const DramRows& rows, double opened, double moving_cycles, double clock_hz);

}  // namespace foretoken
