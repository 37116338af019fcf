#include "network/chakra/collectives.h"

#include "base/error.h"

namespace foretoken {
namespace {

struct Pair {
  ChakraCollective chakra;
  CollectiveKind kind;
};

// The first of a kind is the one that is written.
constexpr Pair pairs[] = {
    {ChakraCollective::all_reduce, CollectiveKind::all_reduce},
    {ChakraCollective::reduce, CollectiveKind::reduce},
    {ChakraCollective::all_gather, CollectiveKind::all_gather},
    {ChakraCollective::gather, CollectiveKind::gather},
    {ChakraCollective::scatter, CollectiveKind::scatter},
    {ChakraCollective::broadcast, CollectiveKind::broadcast},
    {ChakraCollective::all_to_all, CollectiveKind::all_to_all},
    {ChakraCollective::reduce_scatter, CollectiveKind::reduce_scatter},
    {ChakraCollective::reduce_scatter_block, CollectiveKind::reduce_scatter},
    {ChakraCollective::barrier, CollectiveKind::barrier},
};

bool counts_one_share(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::gather;
}

}  // namespace

std::optional<CollectiveKind> collective_kind(ChakraCollective collective) {
  for (const Pair& pair : pairs) {
    if (pair.chakra == collective) return pair.kind;
  }
  return std::nullopt;
}

ChakraCollective chakra_collective(CollectiveKind kind) {
  for (const Pair& pair : pairs) {
    if (pair.kind == kind) return pair.chakra;
  }
  throw InternalError("a message between two ranks is no Chakra collective");
}

double collective_bytes(CollectiveKind kind, double comm_size, int64_t ranks) {
  return counts_one_share(kind) ? comm_size * static_cast<double>(ranks) : comm_size;
}

double chakra_comm_size(CollectiveKind kind, double bytes, int64_t ranks) {
  return counts_one_share(kind) ? bytes / static_cast<double>(ranks) : bytes;
}

}  // namespace foretoken
