#include "accelerator/tensor_flow.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

// The part of a rank's traffic that is left when instances below one parent want the same words.
double shared_by_neighbours(const EvaluationPlan& plan, const FlatNest& nest, const RankPlan& rank, int parent,
                            int child, double extent) {
  double left = 1;
  for (int i = parent; i < child; ++i) {
    const LevelPlan& own = plan.level[i];
    int found = 0;
    uint32_t spread = 0;  // dimensions of those found
    std::array<double, 2> shift{}, bound{};
    for (int l = nest.first[i]; l < nest.first[i + 1]; ++l) {
      const FlatLoop& loop = nest.loop[l];
      if (!loop.spatial) continue;
      for (int term = 0; term < rank.terms; ++term) {
        if (rank.dimension[term] != loop.dimension) continue;
        const double own_shift = rank.coefficient[term] * loop.step;
        if (own.links && own_shift < extent) {
          left *= (extent + (loop.bound - 1) * own_shift) / (loop.bound * extent);
        } else if (found < 2) {
          shift[found] = own_shift;
          bound[found] = loop.bound;
          spread |= 1U << loop.dimension;
          ++found;
        }
      }
    }
    // With a remainder tiles differ in size, so few are the same.
    const bool alike = (spread & nest.uneven) == 0 || !plan.rules.idle_instances_rest;
    if (found == 2 && own.multicast && alike) {
      left *= distinct_sums({shift[0], bound[0]}, {shift[1], bound[1]}) / (bound[0] * bound[1]);
    }
  }
  return left;
}

// Words that a step of the loop over a rank's term `moving` leaves in place, summed over the tiles of the other terms:
// `overlap` for full ones, less for the last of a dimension with a remainder.
double overlap_of_all(const EvaluationPlan& plan, const FlatNest& nest, const RankPlan& rank, int moving,
                      double overlap, const TileSizes& tile, const TileSizes& tiles) {
  double all = 0;
  for (unsigned lasts = 0; lasts < 1U << rank.terms; ++lasts) {
    double count = 1, left = overlap;
    for (int term = 0; term < rank.terms && count > 0; ++term) {
      const int d = rank.dimension[term];
      const bool uneven = (nest.uneven >> d & 1) != 0 && term != moving;
      if ((lasts >> term & 1) == 0) {
        if (term != moving) count *= uneven ? tiles[d] - 1 : tiles[d];
      } else if (uneven) {
        left -= rank.coefficient[term] * (tile[d] * tiles[d] - plan.size[d]);
      } else {
        count = 0;
      }
    }
    all += count * std::max(0.0, left);
  }
  return all;
}

// How often the tiles of a tensor are moved, from the loops outside them.
struct TileMoves {
  // The innermost loop in time that moves the tile: loops inside it leave the tile where it is, and every turn of a
  // loop outside it starts over. Multipliers hold no tile, so each turn of any loop counts. -1 = none.
  int moved_by = -1;
  bool unrelated_inside = false;
  // Turns of loops over dimensions that the tensor does not use.
  double unrelated_received = 1, unrelated_delivered = 1;
  double apart = 1;  // different tiles below one parent at a time
  TileSizes tiles;   // number: of a dimension that the tensor uses
};

struct Between {
  int parent = 0, child = 0;
};

// One parent serves all of a spatial loop's instances with one word, or sums theirs to one.
bool is_shared_at(const EvaluationPlan& plan, const FlatNest& nest, const TensorPlan& own, Between levels, int i) {
  const LevelPlan& at = plan.level[nest.loop[i].level];
  return nest.loop[i].spatial && i >= nest.first[levels.parent] && (own.written ? at.reduces : at.multicast);
}

// Dimensions with a remainder: their turns are counted, not multiplied.
void count_uneven(const EvaluationPlan& plan, const FlatNest& nest, const TensorPlan& own, Between levels,
                  TileMoves& moves) {
  const int end = nest.first[levels.child];
  for (int d = 0; d < plan.dimensions; ++d) {
    if ((nest.uneven >> d & 1) == 0) continue;
    if ((own.dimensions >> d & 1) != 0) {
      moves.tiles[d] = true_iterations(nest, d, end, [](int) { return true; });
      continue;
    }
    const auto counts = [&](int i) { return nest.loop[i].spatial || i <= moves.moved_by; };
    moves.unrelated_received *= true_iterations(nest, d, end, counts);
    moves.unrelated_delivered *=
        true_iterations(nest, d, end, [&](int i) { return counts(i) && !is_shared_at(plan, nest, own, levels, i); });
  }
}

TileMoves tile_moves(const EvaluationPlan& plan, const FlatNest& nest, const TensorPlan& own, Between levels) {
  const int end = nest.first[levels.child];
  TileMoves moves;
  if (levels.child == plan.levels) moves.moved_by = end;
  std::fill_n(moves.tiles.begin(), plan.dimensions, 1.0);
  for (int i = end - 1; i >= 0; --i) {
    const FlatLoop& loop = nest.loop[i];
    const bool related = (own.dimensions >> loop.dimension & 1) != 0;
    if (!loop.spatial && moves.moved_by < 0) {
      if (!related) {
        moves.unrelated_inside = true;
        continue;
      }
      moves.moved_by = i;
    }
    if (related) {
      moves.tiles[loop.dimension] *= loop.bound;
      if (loop.spatial && i >= nest.first[levels.parent]) moves.apart *= loop.bound;
      continue;
    }
    if ((nest.uneven >> loop.dimension & 1) != 0) continue;  // counted below
    moves.unrelated_received *= loop.bound;
    if (!is_shared_at(plan, nest, own, levels, i)) moves.unrelated_delivered *= loop.bound;
  }
  if (nest.uneven != 0) count_uneven(plan, nest, own, levels, moves);
  return moves;
}

// Words of a rank in all tiles together: the sum of 1 + sum(coefficient (size - 1)), less what steps leave in place.
double words_of_rank(const EvaluationPlan& plan, const FlatNest& nest, const RankPlan& rank, Between levels,
                     const TileSizes& tile, double extent, const TileMoves& moves) {
  const TileSizes& tiles = moves.tiles;
  double all_tiles = 1;
  for (int term = 0; term < rank.terms; ++term) all_tiles *= tiles[rank.dimension[term]];
  double words = all_tiles;
  for (int term = 0; term < rank.terms; ++term) {
    const auto d = rank.dimension[term];
    words += rank.coefficient[term] * (plan.size[d] - tiles[d]) * (all_tiles / tiles[d]);
  }
  const bool computes = levels.child == plan.levels;
  if (computes || moves.moved_by < 0) return words;
  if (moves.unrelated_inside && !plan.rules.halo_across_unrelated_loops) return words;
  const FlatLoop& loop = nest.loop[moves.moved_by];
  for (int term = 0; term < rank.terms; ++term) {
    const int d = rank.dimension[term];
    if (d != loop.dimension) continue;
    const double overlap = extent - rank.coefficient[term] * loop.step;
    if (overlap <= 0) continue;
    const double sweeps = (nest.uneven >> d & 1) != 0 ? true_iterations(nest, d, nest.first[levels.child],
                                                                        [&](int i) { return i != moves.moved_by; })
                                                      : tiles[d] / loop.bound;
    words -= (tiles[d] - sweeps) * overlap_of_all(plan, nest, rank, term, overlap, tile, tiles);
  }
  return words;
}

double extent_of_rank(const RankPlan& rank, const TileSizes& tile) {
  double extent = 1;
  for (int term = 0; term < rank.terms; ++term) extent += rank.coefficient[term] * (tile[rank.dimension[term]] - 1);
  return extent;
}

}  // namespace

TensorFlow tensor_flow(const EvaluationPlan& plan, const FlatNest& nest, int tensor_index, int parent, int child,
                       const TileSizes& tile) {
  const TensorPlan& own = plan.tensor[tensor_index];
  const Between levels{.parent = parent, .child = child};
  const TileMoves moves = tile_moves(plan, nest, own, levels);
  double received = moves.unrelated_received;
  double delivered = moves.unrelated_delivered;
  for (int r = 0; r < own.ranks; ++r) {
    const RankPlan& rank = own.rank[r];
    if (rank.terms == 1 && rank.coefficient[0] == 1) {
      // Tiles of one dimension do not overlap: together they are the dimension.
      received *= rank.full_extent;
      delivered *= rank.full_extent;
      continue;
    }
    const double extent = extent_of_rank(rank, tile);
    const double words = words_of_rank(plan, nest, rank, levels, tile, extent, moves);
    received *= words;
    delivered *= words * shared_by_neighbours(plan, nest, rank, parent, child, extent);
  }
  const bool computes = child == plan.levels;
  const double tile_size = computes ? 1 : tile_words(plan.problem->tensors[tensor_index], tile);
  return {.received = received, .delivered = delivered, .first = tile_size * moves.apart};
}

double copies(const EvaluationPlan& plan, const FlatNest& nest, int tensor_index, int level_index) {
  const uint32_t unrelated = ~plan.tensor[tensor_index].dimensions;
  const int end = nest.first[level_index];
  double copies = 1;
  for (int i = 0; i < end; ++i) {
    const FlatLoop& loop = nest.loop[i];
    if (loop.spatial && ((unrelated & ~nest.uneven) >> loop.dimension & 1) != 0) copies *= loop.bound;
  }
  if ((unrelated & nest.uneven) == 0) return copies;
  for (int d = 0; d < plan.dimensions; ++d) {
    if (((unrelated & nest.uneven) >> d & 1) == 0) continue;
    copies *= true_iterations(nest, d, end, [&](int i) { return nest.loop[i].spatial; });
  }
  return copies;
}

}  // namespace foretoken
