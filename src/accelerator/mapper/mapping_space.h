// All mappings that constraints leave: places for loops, the orders and the tensors a level may keep.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accelerator/mapper/constraints.h"
#include "accelerator/mapping.h"

namespace foretoken {

// When bounds of loops need not divide the size of their dimension.
enum class Remainders {
  never,
  where_divisors_are_few,  // neighbouring divisors more than four times apart, as of 7 or 13
  always,
};

// A place that holds one loop of each dimension.
struct LoopSlot {
  int level = 0;
  LoopKind kind = LoopKind::temporal;
  int64_t fanout = 0;  // spatial: product of all bounds at most; 0 = no limit
};

// One mapping in the form in which a search changes it.
struct MappingPoint {
  std::vector<int64_t> bound;  // slots x dimensions
  std::vector<int> order;      // levels x dimensions, innermost first: loops in time
  std::vector<uint32_t> kept;  // by level
};

struct MappingSpace {
  MappingSpace(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
               Remainders remainders);

  int dimensions = 0, levels = 0, tensors = 0;
  std::vector<LoopSlot> slots;                 // in the order of loops: outermost first
  std::vector<int64_t> size;                   // of dimensions
  std::vector<int64_t> most;                   // slots x dimensions: largest bound; 1 = no loop there
  std::vector<int64_t> fixed;                  // slots x dimensions: the only bound; 0 = free
  std::vector<bool> uneven;                    // by dimension: remainders allowed
  std::vector<std::vector<int>> open_slots;    // by dimension: those that a search may change, outermost first
  std::vector<std::vector<int64_t>> divisors;  // of sizes, rising
  std::vector<std::vector<int64_t>> primes;    // of sizes, each once
  std::vector<std::vector<int>> given_order;   // by level: the innermost places of `order`
  std::vector<int64_t> most_spread;            // levels x dimensions: X and Y together
  bool constrains_array = false;               // least use or largest spread are to be looked at
  std::vector<uint32_t> must_keep, may_keep;
  std::vector<double> least_used;  // by level: instances below that a mapping has to use at least
  std::vector<uint32_t> sliding;   // by tensor: bits of dimensions that an index adds to others, so that tiles overlap
  std::vector<uint32_t> related;   // by tensor: bits of dimensions

  // Everything outermost, nothing spread, all kept that may be. Not always a mapping that fits.
  MappingPoint outermost() const;
  // Whether a level further in may keep a tensor; else every turn of the level's loops counts, in any order.
  bool order_matters(int level) const;
  // Fan-outs and the least use of the array; buffers are the evaluator's.
  bool fits_array(const MappingPoint& point) const;
  // Overwrites `mapping`; allocates nothing once it has been used before.
  void write_mapping(const MappingPoint& point, const Problem& problem, Mapping& mapping) const;
  // The point that write_mapping makes this mapping of.
  MappingPoint point_of(const Mapping& mapping) const;
  // log2 of the number of points with divisors as bounds: factors, orders and tensors kept.
  double log2_points() const;

  int slot_index(int slot, int dimension) const { return slot * dimensions + dimension; }

 private:
  // How far a dimension may still be spread over a spatial slot.
  int64_t room_to_spread(const MappingPoint& point, int slot, int dimension) const;
  void limit_slots(const LoopConstraint& own);
  void fix_spatial_factors(const LoopConstraint& own, const Constraints& constraints, const Problem& problem);
  void fix_remaining_factors(const Constraints& constraints, const Problem& problem);
  void check_products(const Constraints& constraints, const Problem& problem, Remainders remainders);
};

// Orders of the loops of a level that differ in traffic, innermost first: only the innermost loop that moves a tensor
// matters to it, so orders are told apart by which loop that is, and loops that move nothing yet go innermost.
// `active` are the dimensions with a loop; `given` innermost places are fixed.
std::vector<std::vector<int>> distinct_orders(const MappingSpace& space, uint32_t active, std::span<const int> given);

}  // namespace foretoken
