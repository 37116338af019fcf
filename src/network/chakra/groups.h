// Process groups as Chakra traces and the files beside them name them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "network/chakra/chakra.h"

namespace foretoken {

// Ranks by the name of their group, in the order the group lists them.
using NamedGroups = std::map<std::string, std::vector<int32_t>, std::less<>>;

// ASTRA-sim's communicator group file: {"0": [0, 1, 2, 3], "1": [4, 5, 6, 7]}. InputError for a rank named twice in a
// group, or not below `ranks`.
NamedGroups read_group_file(const std::filesystem::path& path, int64_t ranks);

// What PyTorch writes into the inputs of its node "## process_group:init ##", with Python's quotes around it or not:
// [{"pg_name": "0", "ranks": [0, 1], ...}, ...] where an empty list of ranks is all of them. Nothing where the text is
// something else.
NamedGroups groups_in_metadata(std::string_view values, int64_t ranks);
// The same as it stands there: groups of all ranks have an empty list, so `ranks` may be a mere bound.
NamedGroups listed_groups_in_metadata(std::string_view values, int64_t ranks);

// The node that says the same.
ChakraNode chakra_group_node(uint64_t id, const NamedGroups& groups);

}  // namespace foretoken
