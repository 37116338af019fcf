#include "accelerator/sparse/fiber.h"

#include <algorithm>
#include <iterator>

#include "accelerator/tile.h"

namespace foretoken {
namespace {

bool level_keeps(const Mapping& mapping, int tensor, int level) {
  return (mapping.kept[level] >> tensor & 1) != 0;
}

// Takes a tensor's loops from the outside in.
class LoopsOfTensor {
 public:
  LoopsOfTensor(const Problem& problem, const Mapping& mapping, int tensor, int first_level, int end_level)
      : problem_(problem), mapping_(mapping), tensor_(problem.tensors[tensor]) {
    while (next_ < std::ssize(mapping.loops) && mapping.loops[next_].level < first_level) ++next_;
    end_ = next_;
    while (end_ < std::ssize(mapping.loops) && mapping.loops[end_].level < end_level) ++end_;
    pass_over();
  }

  bool any_left() const { return next_ < end_; }
  int dimension() const { return mapping_.loops[next_].dimension; }
  double take() {
    const auto bound = static_cast<double>(mapping_.loops[next_++].bound);
    pass_over();
    return bound;
  }
  TileSizes tile() const { return tile_inside(mapping_, problem_, next_); }

 private:
  // Loops that run once, or do not move the tensor.
  void pass_over() {
    while (next_ < end_ &&
           (mapping_.loops[next_].bound == 1 || !uses_dimension(tensor_, mapping_.loops[next_].dimension))) {
      ++next_;
    }
  }

  const Problem& problem_;
  const Mapping& mapping_;
  const ProblemTensor& tensor_;
  int next_ = 0, end_ = 0;
};

FiberRank rank_of_words(const ProblemTensor& tensor, const TileSizes& tile) {
  return {.coordinates = tile_words(tensor, tile), .inside = std::vector<double>(tensor.ranks.size(), 1.0)};
}

}  // namespace

int level_inside(const Mapping& mapping, int tensor, int level) {
  ++level;
  while (level < std::ssize(mapping.kept) && !level_keeps(mapping, tensor, level)) ++level;
  return level;
}

int level_outside(const Mapping& mapping, int tensor, int level) {
  --level;
  while (level >= 0 && !level_keeps(mapping, tensor, level)) --level;
  return level;
}

std::vector<FiberRank> fiber_ranks(const Problem& problem, const Mapping& mapping, const SparsityDescription& sparsity,
                                   int tensor, int level) {
  const ProblemTensor& own = problem.tensors[tensor];
  const std::vector<RankFormat>& formats = sparsity.levels[level].formats[tensor];
  if (formats.empty()) return {rank_of_words(own, tile_at(mapping, problem, level))};

  const int child = level_inside(mapping, tensor, level);
  const bool computes = child == std::ssize(mapping.kept);
  std::vector<FiberRank> inner;
  if (!computes) inner = fiber_ranks(problem, mapping, sparsity, tensor, child);
  const auto inner_ranks = computes ? size_t{1} : inner.size();
  while (inner.size() > formats.size()) {  // fewer ranks here: the outer ones become one
    inner[1].coordinates *= inner[0].coordinates;
    inner.erase(inner.begin());
  }

  LoopsOfTensor loops(problem, mapping, tensor, level, child);
  std::vector<FiberRank> ranks;
  for (size_t r = 0; r + inner_ranks < formats.size(); ++r) {
    const auto& together = formats[r].dimensions;
    const bool takes_rest = !computes && r + inner_ranks + 1 == formats.size();
    FiberRank rank;
    if (loops.any_left()) rank.coordinates = loops.take();
    while (loops.any_left() && (takes_rest || std::ranges::find(together, loops.dimension()) != together.end())) {
      rank.coordinates *= loops.take();
    }
    rank.inside = tile_extents(own, loops.tile());
    ranks.push_back(std::move(rank));
  }
  if (computes) {
    ranks.push_back(rank_of_words(own, loops.tile()));
    return ranks;
  }
  while (loops.any_left()) inner.front().coordinates *= loops.take();  // no rank of their own
  ranks.insert(ranks.end(), inner.begin(), inner.end());
  return ranks;
}

}  // namespace foretoken
