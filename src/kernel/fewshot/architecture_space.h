// A space of architectures: networks that differ in a few choices, so that a timing of some of them says much about
// all. One space is one file in spaces/ and one line in spaces/list.cpp; the name is what users type.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace foretoken {

// Says that a cell of an architecture is wrong and what was expected there; does not return.
using CellComplaint = std::function<void(size_t cell, std::string expected)>;

// Rows of a published table by their id: from those of `fit` come the timings, those of `query` are predicted.
struct RowRange {
  size_t first = 0, count = 0;
  bool contains(size_t id) const { return id >= first && id - first < count; }
};

struct ArchitectureSpace {
  std::string_view name;
  std::string_view summary;
  std::span<const std::string_view> columns;  // of a CSV file; together they describe one architecture
  // Names of the features, in the order of the values. Those that start with "log_" are logarithms of a cost (FLOPs,
  // traffic, calls): a device that does nothing but this cost runs in proportion to it.
  std::vector<std::string> (*feature_names)();
  // The features of the architecture that `cells`, one per column, describe.
  std::vector<double> (*features)(std::span<const std::string_view> cells, const CellComplaint& complain);
  // Cells of an architecture drawn at random.
  std::vector<std::string> (*draw)(RandomStream& stream);
  // How the names of features start that say which block stands where: a latency that is linear in these is a sum of
  // estimates of blocks, not a measurement of the whole. Empty: not told apart.
  std::string_view block_prefix;
  RowRange fit, query;  // the published protocol of few-shot adaptation, by id
};

// Features of cells that `draw` gave.
std::vector<double> drawn_features(const ArchitectureSpace& space, std::span<const std::string> cells);

// InputError that names the nearest space when there is none of this name.
const ArchitectureSpace& architecture_space(std::string_view name);
std::span<const ArchitectureSpace> architecture_spaces();

}  // namespace foretoken
