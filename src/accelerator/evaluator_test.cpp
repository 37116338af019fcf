// The closed form against counting: loops are run one iteration at a time, every instance holds real sets of words.
//
// What the count takes from the model, in words:
// - A tile of a tensor is the box from its first to its last index, also where a stride leaves holes.
// - An instance's tile stays while only loops step that are further in than the innermost loop in time over one of the
//   tensor's dimensions. When that loop steps, the words it has already are kept. When one further out steps, all of
//   the tile is fetched anew.
// - Multipliers hold nothing.
// - Instances below one parent that want the same words at the same time share one read (or one sum), level by level.
// - An instance's first update of a word reads nothing, and its first tile of sums is not fetched.
#include "accelerator/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "accelerator/mapping_text.h"
#include "accelerator/tile.h"
#include "base/random.h"

namespace foretoken::evaluator_test {

using Digits = std::vector<int64_t>;
using Words = std::vector<int64_t>;  // sorted numbers of words

struct CountedFlow {
  double received = 0, delivered = 0;
  double first_received = 0, first_delivered = 0;  // of those, words that an instance had never seen
};

// One tensor between two levels, by running the loops.
class LoopRunner {
 public:
  LoopRunner(const Architecture& architecture, const Problem& problem, const Mapping& mapping, EvaluationRules rules,
             int tensor, int parent, int child)
      : architecture_(architecture),
        problem_(problem),
        rules_(rules),
        tensor_(problem.tensors[tensor]),
        parent_(parent),
        child_(child) {
    computes_ = child + 1 == static_cast<int>(architecture.levels.size());
    tile_ = tile_at(mapping, problem, child);
    std::vector<double> inside(problem.dimensions.size(), 1);
    for (size_t i = mapping.loops.size(); i-- > 0;) {
      const Loop& loop = mapping.loops[i];
      if (loop.bound == 1) continue;
      if (loop.level < child) {
        loops_.insert(loops_.begin(), loop);
        steps_.insert(steps_.begin(), static_cast<int64_t>(inside[loop.dimension]));
      }
      inside[loop.dimension] *= static_cast<double>(loop.bound);
    }
    for (int i = 0; i < std::ssize(loops_); ++i) {
      if (is_spatial(loops_[i])) continue;
      if (uses_dimension(tensor_, loops_[i].dimension)) {
        moves_ = i;
        unrelated_inside_ = false;
      } else {
        unrelated_inside_ = true;
      }
    }
  }

  CountedFlow run() {
    Digits digits(loops_.size(), 0);
    step_time(digits, 0);
    return flow_;
  }

 private:
  // Loops in time, one after the other; those in space stay at 0.
  void step_time(Digits& digits, int loop) {
    if (loop == std::ssize(loops_)) {
      one_step(digits);
      return;
    }
    const int64_t bound = is_spatial(loops_[loop]) ? 1 : loops_[loop].bound;
    for (digits[loop] = 0; digits[loop] < bound; ++digits[loop]) step_time(digits, loop + 1);
    digits[loop] = 0;
  }

  void one_step(const Digits& time) {
    std::map<Digits, std::vector<Words>> wanted;
    Digits digits = time;
    spread(digits, 0, wanted);
    // From the child's instances up to those of the parent.
    for (int level = child_ - 1; level >= parent_; --level) {
      std::map<Digits, std::vector<std::vector<Words>>> groups;
      for (auto& [instance, words] : wanted) {
        Digits node = instance;
        for (int i = 0; i < std::ssize(loops_); ++i) {
          if (is_spatial(loops_[i]) && loops_[i].level == level) node[i] = 0;
        }
        groups[node].push_back(std::move(words));
      }
      const AcceleratorLevel& own = architecture_.levels[level];
      const bool shares = tensor_.written ? own.spatial_reduction : own.multicast;
      wanted.clear();
      for (auto& [node, requests] : groups) {
        // The one that wants most first: others may want a part of that.
        std::ranges::stable_sort(requests, std::greater(), [](const auto& words) { return words.size(); });
        std::vector<std::vector<Words>> read;
        for (const auto& request : requests) {
          const auto included = [&](const auto& other) { return std::ranges::includes(other, request); };
          if (shares && std::ranges::any_of(read, included)) continue;
          read.push_back(request);
        }
        auto& all = wanted[node];
        for (const auto& request : read) all.insert(all.end(), request.begin(), request.end());
        std::ranges::sort(all);
      }
    }
    for (const auto& [node, requests] : wanted) {
      std::set<int64_t>& seen = seen_by_parent_[spatial_part(node, parent_)];
      for (const Words& words : requests) {
        flow_.delivered += static_cast<double>(words.size());
        for (const int64_t word : words) flow_.first_delivered += seen.insert(word).second ? 1 : 0;
      }
    }
  }

  void spread(Digits& digits, int loop, std::map<Digits, std::vector<Words>>& wanted) {
    if (loop == std::ssize(loops_)) {
      const Words words = fetched(digits);
      if (words.empty()) return;
      flow_.received += static_cast<double>(words.size());
      std::set<int64_t>& seen = seen_by_child_[spatial_part(digits, child_)];
      for (const int64_t word : words) flow_.first_received += seen.insert(word).second ? 1 : 0;
      wanted[digits].push_back(words);
      return;
    }
    if (!is_spatial(loops_[loop])) {
      spread(digits, loop + 1, wanted);
      return;
    }
    for (digits[loop] = 0; digits[loop] < loops_[loop].bound; ++digits[loop]) spread(digits, loop + 1, wanted);
    digits[loop] = 0;
  }

  Digits spatial_part(const Digits& digits, int level) const {
    Digits part;
    for (int i = 0; i < std::ssize(loops_); ++i) {
      if (is_spatial(loops_[i]) && loops_[i].level < level) part.push_back(digits[i]);
    }
    return part;
  }

  // The words that an instance does not have yet, and from now on has.
  Words fetched(const Digits& digits) {
    Words tile = words_of_tile(digits);
    if (tile.empty() || computes_) return tile;
    Held& held = held_[spatial_part(digits, child_)];
    Digits turns;
    for (int i = 0; i <= moves_; ++i) {
      if (!is_spatial(loops_[i])) turns.push_back(digits[i]);
    }
    if (held.any && turns == held.turns) return {};
    Words missing = tile;
    const bool may_slide = rules_.halo_across_unrelated_loops || !unrelated_inside_;
    if (held.any && may_slide && std::equal(turns.begin(), turns.end() - 1, held.turns.begin())) {
      missing.clear();
      std::ranges::set_difference(tile, held.words, std::back_inserter(missing));
    }
    held = {.any = true, .turns = turns, .words = std::move(tile)};
    return missing;
  }

  // Empty for an instance without work.
  Words words_of_tile(const Digits& digits) const {
    std::vector<int64_t> start(problem_.dimensions.size(), 0), size;
    for (size_t i = 0; i < loops_.size(); ++i) start[loops_[i].dimension] += digits[i] * steps_[i];
    for (size_t d = 0; d < start.size(); ++d) {
      const int64_t left = problem_.dimensions[d].size - start[d];
      if (left <= 0) return {};
      size.push_back(std::min(left, static_cast<int64_t>(tile_[d])));
    }
    Words words = {0};
    for (const auto& rank : tensor_.ranks) {
      int64_t full = 1, first = 0, extent = 1;
      for (const auto& [dimension, coefficient] : rank) {
        full += coefficient * (problem_.dimensions[dimension].size - 1);
        first += coefficient * start[dimension];
        extent += coefficient * (size[dimension] - 1);
      }
      Words longer;
      for (const int64_t word : words) {
        for (int64_t i = 0; i < extent; ++i) longer.push_back(word * full + first + i);
      }
      words = std::move(longer);
    }
    return words;
  }

  struct Held {
    bool any = false;
    Digits turns;
    Words words;
  };

  const Architecture& architecture_;
  const Problem& problem_;
  EvaluationRules rules_;
  const ProblemTensor& tensor_;
  int parent_, child_;
  bool computes_ = false;
  TileSizes tile_{};
  std::vector<Loop> loops_;  // outside the child
  std::vector<int64_t> steps_;
  int moves_ = -1;
  bool unrelated_inside_ = false;
  std::map<Digits, Held> held_;
  std::map<Digits, std::set<int64_t>> seen_by_child_, seen_by_parent_;
  CountedFlow flow_;
};

// Cycles: turns of all loops in time in which some multiplier works.
double counted_cycles(const Mapping& mapping, const Problem& problem) {
  double cycles = 1;
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    std::set<Digits> turns;
    for (int64_t index = 0; index < problem.dimensions[d].size; ++index) {
      Digits own;
      int64_t left = index;
      for (size_t i = mapping.loops.size(); i-- > 0;) {
        const Loop& loop = mapping.loops[i];
        if (loop.dimension != static_cast<int>(d)) continue;
        if (!is_spatial(loop)) own.push_back(left % loop.bound);
        left /= loop.bound;
      }
      turns.insert(own);
    }
    cycles *= static_cast<double>(turns.size());
  }
  return cycles;
}

void expect_counted(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                    const EvaluationRules& rules, const std::string& which) {
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(architecture, problem, rules).evaluate(mapping, result)) << which;
  const std::string where = which + "\n" + loop_nest_text(mapping, architecture, problem);
  EXPECT_EQ(result.compute_cycles, counted_cycles(mapping, problem)) << where;
  const int compute = static_cast<int>(architecture.levels.size()) - 1;
  for (int t = 0; t < std::ssize(problem.tensors); ++t) {
    int parent = -1;
    for (int child = 0; child <= compute; ++child) {
      if (child < compute && (mapping.kept[child] >> t & 1) == 0) continue;
      if (parent >= 0) {
        const CountedFlow counted = LoopRunner(architecture, problem, mapping, rules, t, parent, child).run();
        const bool written = problem.tensors[t].written;
        const std::string flow = problem.tensors[t].name + " from " + architecture.levels[parent].name + " to " +
                                 architecture.levels[child].name + "\n" + where;
        const TensorTraffic& above = traffic_at(result, problem, parent, t);
        EXPECT_NEAR(above.words_to_below, counted.received, 1e-6) << flow;
        EXPECT_NEAR(above.reads * above.instances, counted.delivered - (written ? counted.first_delivered : 0), 1e-6)
            << flow;
        EXPECT_NEAR(above.updates * above.instances, written ? counted.delivered : 0, 1e-6) << flow;
        if (child < compute) {
          const TensorTraffic& below = traffic_at(result, problem, child, t);
          EXPECT_NEAR(below.fills * below.instances, counted.received - (written ? counted.first_received : 0), 1e-6)
              << flow;
        }
      }
      parent = child;
    }
  }
}

class RandomMappings {
 public:
  explicit RandomMappings(std::string_view name) : random_(7, name) {}

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
  }
  bool coin() { return random_.below(2) == 0; }

  Problem gemm() { return gemm_problem({.m = between(1, 7), .n = between(1, 7), .k = between(1, 7)}); }

  Problem convolution() {
    return convolution_problem({.batch = between(1, 2),
                                .in_channels = between(1, 3),
                                .out_channels = between(1, 3),
                                .out_width = between(1, 6),
                                .out_height = between(1, 3),
                                .kernel_width = between(1, 4),
                                .kernel_height = between(1, 2),
                                .stride_width = between(1, 3),
                                .dilation_width = between(1, 2)});
  }

  Architecture architecture() {
    Architecture own{.name = "random"};
    const int64_t storage = between(1, 3);
    int64_t x = 1, y = 1;
    for (int64_t i = 0; i < storage; ++i) {
      own.levels.push_back(level("storage", LevelKind::storage, x, y));
      if (coin()) {
        own.levels.push_back(level("network", LevelKind::network, x, y));
        x *= between(1, 2);
      }
      x *= between(1, x > 2 ? 1 : 3);
      y *= between(1, y > 2 ? 1 : 3);
    }
    own.levels.push_back(level("multiplier", LevelKind::compute, x, y));
    return own;
  }

  // Bounds that divide, or any.
  Mapping mapping(const Architecture& architecture, const Problem& problem, bool remainders) {
    const int compute = static_cast<int>(architecture.levels.size()) - 1;
    std::vector<int64_t> left;
    for (const ProblemDimension& dimension : problem.dimensions) left.push_back(dimension.size);
    std::vector<std::vector<Loop>> loops(compute);
    const auto take = [&](int level, LoopKind kind, int64_t limit) {
      const auto d = static_cast<int>(random_.below(left.size()));
      int64_t bound = between(1, std::min(left[d], limit));
      while (!remainders && left[d] % bound != 0) --bound;
      left[d] = (left[d] + bound - 1) / bound;
      if (bound > 1) loops[level].push_back({.level = level, .dimension = d, .bound = bound, .kind = kind});
      return bound;
    };
    for (int i = compute - 1; i >= 0; --i) {
      int64_t x = fanout_x(architecture, i), y = fanout_y(architecture, i);
      for (int tries = 0; tries < 2; ++tries) {
        x /= take(i, LoopKind::spatial_x, x);
        y /= take(i, LoopKind::spatial_y, y);
      }
      for (int64_t tries = between(0, 4); tries > 0; --tries) take(i, LoopKind::temporal, max_dimension_size);
    }
    for (size_t d = 0; d < left.size(); ++d) {
      if (left[d] > 1) loops[0].push_back({.level = 0, .dimension = static_cast<int>(d), .bound = left[d]});
    }
    Mapping own;
    for (auto& level : loops) own.loops.insert(own.loops.end(), level.rbegin(), level.rend());
    set_remainders(own, problem);
    for (int i = 0; i < compute; ++i) {
      const auto all = (1U << problem.tensors.size()) - 1;
      const bool stores = architecture.levels[i].kind == LevelKind::storage;
      own.kept.push_back(i == 0 ? all : stores ? static_cast<uint32_t>(random_.below(all + 1)) : 0);
    }
    return own;
  }

 private:
  AcceleratorLevel level(std::string name, LevelKind kind, int64_t x, int64_t y) {
    return {.name = name + std::to_string(++named_),
            .kind = kind,
            .instances_x = x,
            .instances_y = y,
            .multicast = random_.below(4) != 0,
            .spatial_reduction = random_.below(4) != 0};
  }

  RandomStream random_;
  int named_ = 0;
};

// Two loops in space at one level over dimensions that an index adds up, one of them with a remainder: the closed form
// counts their reads apart, and so from above.
bool spreads_a_sum_unevenly(const Mapping& mapping, const Problem& problem) {
  const auto is_uneven = [&](int dimension) {
    return std::ranges::any_of(
        mapping.loops, [&](const Loop& loop) { return loop.dimension == dimension && loop.last != loop.bound; });
  };
  for (const ProblemTensor& tensor : problem.tensors) {
    for (const auto& rank : tensor.ranks) {
      std::map<int, std::pair<int, bool>> by_level;  // loops, and whether any is uneven
      for (const Loop& loop : mapping.loops) {
        const auto adds = [&](const ProjectionTerm& term) { return term.dimension == loop.dimension; };
        if (!is_spatial(loop) || rank.size() < 2 || std::ranges::none_of(rank, adds)) continue;
        auto& [loops, uneven] = by_level[loop.level];
        uneven = uneven || is_uneven(loop.dimension);
        if (++loops > 1 && uneven) return true;
      }
    }
  }
  return false;
}

constexpr int trials = 1500, convolution_trials = 700;

TEST(MappingEvaluatorAgainstCounting, products_of_matrices) {
  RandomMappings random("gemm");
  for (int i = 0; i < trials && !HasFailure(); ++i) {
    const Architecture architecture = random.architecture();
    const Problem problem = random.gemm();
    expect_counted(architecture, problem, random.mapping(architecture, problem, false), {}, std::to_string(i));
  }
}

TEST(MappingEvaluatorAgainstCounting, products_of_matrices_with_remainders) {
  RandomMappings random("gemm with remainders");
  for (int i = 0; i < trials && !HasFailure(); ++i) {
    const Architecture architecture = random.architecture();
    const Problem problem = random.gemm();
    expect_counted(architecture, problem, random.mapping(architecture, problem, true), {}, std::to_string(i));
  }
}

TEST(MappingEvaluatorAgainstCounting, convolutions) {
  RandomMappings random("convolution");
  for (int i = 0; i < convolution_trials && !HasFailure(); ++i) {
    const Architecture architecture = random.architecture();
    const Problem problem = random.convolution();
    const EvaluationRules rules{.halo_across_unrelated_loops = random.coin()};
    expect_counted(architecture, problem, random.mapping(architecture, problem, false), rules, std::to_string(i));
  }
}

TEST(MappingEvaluatorAgainstCounting, convolutions_with_remainders) {
  RandomMappings random("convolution with remainders");
  for (int i = 0; i < convolution_trials && !HasFailure(); ++i) {
    const Architecture architecture = random.architecture();
    const Problem problem = random.convolution();
    const Mapping mapping = random.mapping(architecture, problem, true);
    if (spreads_a_sum_unevenly(mapping, problem)) continue;
    expect_counted(architecture, problem, mapping, {}, std::to_string(i));
  }
}

// A weight-stationary systolic array of r x c cells that takes a weight of each column a cycle: SCALE-Sim's cycles of a
// fold are r to load, m to stream, r + c - 2 until the last sum has left the far corner.
TEST(Latency, of_a_systolic_array_is_that_of_its_folds) {
  constexpr int64_t rows = 8, columns = 4, m = 32, n = 16, k = 24;
  Architecture array{
      .name = "array",
      .levels = {{.name = "buffer", .access_cycles = 0, .hop_cycles = 1},
                 {.name = "cell", .instances_x = columns, .instances_y = rows, .depth = 1, .access_cycles = 0},
                 {.name = "multiplier", .kind = LevelKind::compute, .instances_x = columns, .instances_y = rows}}};
  const Problem problem = gemm_problem({.m = m, .n = n, .k = k});
  enum { over_m, over_n, over_k };
  const Mapping mapping{
      .loops = {{.level = 0, .dimension = over_n, .bound = n / columns, .last = n / columns},
                {.level = 0, .dimension = over_k, .bound = k / rows, .last = k / rows},
                {.level = 0, .dimension = over_n, .bound = columns, .last = columns, .kind = LoopKind::spatial_x},
                {.level = 0, .dimension = over_k, .bound = rows, .last = rows, .kind = LoopKind::spatial_y},
                {.level = 1, .dimension = over_m, .bound = m, .last = m}},
      .kept = {0b111, 0b010}};
  constexpr double folds = double{n / columns} * double{k / rows};
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(array, problem).evaluate(mapping, result));
  EXPECT_EQ(result.cycles, folds * m);
  EXPECT_EQ(result.latency.feed_cycles, folds * (rows + columns - 2));
  // With a second buffer the next weights wait in the cells.
  array.levels[1].depth = 2;
  array.levels[1].buffers = 2;
  ASSERT_TRUE(MappingEvaluator(array, problem).evaluate(mapping, result));
  EXPECT_EQ(result.latency.feed_cycles, rows + columns - 2);
}

struct EvaluatorCase {
  Architecture chip;
  Problem problem;
  Mapping mapping;
};
// 4 x 4 x 4 through one buffer, row by row of A; `words_per_cycle` from and to DRAM.
EvaluatorCase small_buffered_gemm(double words_per_cycle) {
  return {.chip = {.name = "chip",
                   .levels = {{.name = "DRAM", .access_cycles = 0, .bandwidth = {.shared = words_per_cycle}},
                              {.name = "buffer", .depth = 64, .access_cycles = 0},
                              {.name = "multiplier", .kind = LevelKind::compute}}},
          .problem = gemm_problem({.m = 4, .n = 4, .k = 4}),
          .mapping = {.loops = {{.level = 0, .dimension = 0, .bound = 4, .last = 4},
                                {.level = 1, .dimension = 1, .bound = 4, .last = 4},
                                {.level = 1, .dimension = 2, .bound = 4, .last = 4}},
                      .kept = {0b111, 0b111}}};
}

TEST(Latency, transfers_into_single_buffers_are_not_hidden) {
  auto [chip, problem, mapping] = small_buffered_gemm(2);
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  // First tiles of A and B, then three more rows of A; the last row of Z goes out, three before it.
  EXPECT_EQ(result.latency.fill_cycles, (4 + 16) / 2.0);
  EXPECT_EQ(result.latency.drain_cycles, 4 / 2.0);
  EXPECT_EQ(result.latency.stall_cycles, 12 / 2.0 + 12 / 2.0);
  chip.levels[1].buffers = 2;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  EXPECT_EQ(result.latency.stall_cycles, 0);
}

TEST(Latency, a_transfer_takes_as_long_as_the_slower_of_its_two_ports) {
  auto [chip, problem, mapping] = small_buffered_gemm(1000);
  Evaluation result;
  chip.levels[1].bandwidth = {.read = {}, .write = 0.5, .shared = {}};
  // All of A and B come in by the buffer's port, where the multiplier's first update of 64 has to get through as well.
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  EXPECT_DOUBLE_EQ(result.latency.fill_cycles, (4 + 16) / 0.5);
  EXPECT_DOUBLE_EQ(result.latency.drain_cycles, 4 / 1000.0 + 1 / 0.5);
  EXPECT_DOUBLE_EQ(result.latency.stall_cycles, 12 / 0.5 + 12 / 1000.0);
  EXPECT_DOUBLE_EQ(result.latency.overlapped_cycles, 63 / 0.5);
  // Sums go out by its port for reads, beside 128 reads of operands and 48 of sums.
  chip.levels[1].bandwidth = {.read = 0.25, .write = {}, .shared = {}};
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  EXPECT_DOUBLE_EQ(result.latency.fill_cycles, (4 + 16) / 1000.0 + 2 / 0.25);
  EXPECT_DOUBLE_EQ(result.latency.drain_cycles, 4 / 0.25);
  EXPECT_DOUBLE_EQ(result.latency.stall_cycles, 12 / 1000.0 + 12 / 0.25);
  EXPECT_DOUBLE_EQ(result.latency.overlapped_cycles, (128 - 2 + 48) / 0.25);
  // With two buffers only the last row of sums is apart; the port has to read the others all the same.
  chip.levels[1].buffers = 2;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  EXPECT_DOUBLE_EQ(result.latency.stall_cycles, 0);
  EXPECT_DOUBLE_EQ(result.latency.overlapped_cycles, (128 - 2 + 48 + 12) / 0.25);
}

TEST(Latency, rows_hold_up_the_transfers_that_nothing_hides_by_their_share_of_the_port) {
  auto [chip, problem, mapping] = small_buffered_gemm(1000);
  chip.levels[1].buffers = 2;
  chip.levels[1].bandwidth = {.read = 0.25, .write = {}, .shared = {}};
  chip.levels[1].rows = {.row_bytes = 64, .refresh_share = 0.5};
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  // As much time again as 128 reads of operands and 48 of sums take. With the 16 sums that go out the port reads 192
  // words, 2 of them before the first product and 4 after the last.
  EXPECT_DOUBLE_EQ(result.levels[1].row_cycles, 704);
  EXPECT_DOUBLE_EQ(result.latency.stall_cycles, 704 * 6 / 192.0);
  EXPECT_DOUBLE_EQ(result.latency.overlapped_cycles, 186 / 0.25 + 704 * 186 / 192.0);
}

// Compute, then every transfer of every level on one port, then the rows, hops and access times that come on top.
double serial_cycles(const Architecture& architecture, const Problem& problem, const Evaluation& result) {
  double sum = result.compute_cycles + result.latency.feed_cycles;
  const auto over = [](double words, double rate) { return rate > 0 ? words / rate : 0; };
  std::vector<int> parent(problem.tensors.size(), -1);
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    const AcceleratorLevel& own = architecture.levels[i];
    const double shared = own.bandwidth.shared.value_or(0);
    sum += result.levels[i].row_cycles;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const TensorTraffic& traffic = traffic_at(result, problem, i, t);
      if (!traffic.kept) continue;
      const double written = traffic.fills + traffic.updates;
      if (problem.tensors[t].written && parent[t] >= 0) {
        const double up = traffic_at(result, problem, parent[t], t).words_to_below / traffic.instances;
        sum += std::max(over(up, own.bandwidth.read.value_or(0)), over(up, shared));
      }
      parent[t] = static_cast<int>(i);
      sum += own.access_cycles;
      sum += std::max(over(traffic.reads, own.bandwidth.read.value_or(0)), over(traffic.reads, shared));
      sum += std::max(over(written, own.bandwidth.write.value_or(0)), over(written, shared));
    }
  }
  return sum;
}

TEST(Latency, lies_between_perfect_overlap_and_everything_one_after_another) {
  RandomMappings random("latency");
  RandomStream rates(11, "bandwidths"), rows(13, "rows");
  constexpr int nests = 10'000;
  int bound_by_memory = 0, evaluated = 0;
  for (int i = 0; evaluated < nests; ++i) {
    ASSERT_LT(i, 20 * nests);
    Architecture architecture = random.architecture();
    for (AcceleratorLevel& level : architecture.levels) {
      const auto rate = [&]() -> std::optional<double> {
        if (rates.below(3) == 0) return std::nullopt;
        return 0.05 * static_cast<double>(1 + rates.below(100));
      };
      if (level.kind != LevelKind::storage) continue;
      level.buffers = 1 + static_cast<int>(rates.below(2));
      level.access_cycles = static_cast<double>(rates.below(4));
      if (random.coin()) {
        level.bandwidth.shared = rate();
      } else {
        level.bandwidth = {.read = rate(), .write = rate(), .shared = {}};
      }
      if (rows.below(3) == 0) {
        level.rows = {.row_bytes = int64_t{1} << rows.below(7),
                      .banks = 1 + static_cast<int>(rows.below(4)),
                      .switch_ns = static_cast<double>(rows.below(50)),
                      .gap_ns = static_cast<double>(rows.below(10)),
                      .refresh_share = 0.1 * static_cast<double>(rows.below(5))};
      }
    }
    const Problem problem = random.coin() ? random.gemm() : random.convolution();
    const Mapping mapping = random.mapping(architecture, problem, random.coin());
    Evaluation result;
    if (!MappingEvaluator(architecture, problem).evaluate(mapping, result)) continue;
    ++evaluated;
    const double latency = result.latency_cycles(), serial = serial_cycles(architecture, problem, result);
    EXPECT_GE(latency, result.cycles * (1 - 1e-12)) << i;
    EXPECT_GE(result.latency.stall_cycles, -1e-9) << i << ": below zero by more than rounding";
    EXPECT_LE(latency, std::ceil(serial) * (1 + 1e-12) + 1) << i << " of " << result.cycles << " cycles";
    if (result.slowest_level >= 0) ++bound_by_memory;
  }
  EXPECT_GT(bound_by_memory, nests / 4);
}

TEST(Latency, a_chip_that_waits_for_memory_counts_each_transfer_once) {
  auto [chip, problem, mapping] = small_buffered_gemm(0.5);
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  // 16 words each of A, B and Z at half a word a cycle, and 64 products: nothing hides anything with one buffer.
  EXPECT_EQ(result.cycles, 96);
  EXPECT_EQ(result.latency_cycles(), 96 + 64);
  // With two, only the first tiles (A's row and B) and the last (Z's row) are apart from the products.
  chip.levels[1].buffers = 2;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  EXPECT_EQ(result.latency_cycles(), (4 + 16 + 4) / 0.5 + 64);
}

TEST(Evaluator, a_result_forgets_the_architecture_it_served_before) {
  const Problem problem = gemm_problem({.m = 2, .n = 2, .k = 2});
  const AccessEnergy access{.read_pj = 1, .fill_pj = 1, .update_pj = 1};
  const AcceleratorLevel multiplier{.name = "multiplier", .kind = LevelKind::compute};
  const Architecture shallow{.name = "shallow", .levels = {{.name = "memory", .energy = access}, multiplier}};
  const Architecture deep{
      .name = "deep",
      .levels = {{.name = "memory", .energy = access}, {.name = "buffer", .energy = access}, multiplier}};
  const std::vector<Loop> loops = {{.dimension = 0, .bound = 2, .last = 2},
                                   {.dimension = 1, .bound = 2, .last = 2},
                                   {.dimension = 2, .bound = 2, .last = 2}};
  Evaluation fresh, used;
  ASSERT_TRUE(MappingEvaluator(shallow, problem).evaluate({.loops = loops, .kept = {0b111}}, fresh));
  ASSERT_TRUE(MappingEvaluator(deep, problem).evaluate({.loops = loops, .kept = {0b111, 0b111}}, used));
  ASSERT_TRUE(MappingEvaluator(shallow, problem).evaluate({.loops = loops, .kept = {0b111}}, used));
  EXPECT_EQ(used.energy_pj, fresh.energy_pj);
}

TEST(Network, words_pay_for_the_links_they_pass) {
  const Architecture chip{.name = "chip",
                          .levels = {{.name = "buffer", .energy = {.hop_pj_per_word = 1}},
                                     {.name = "cell", .instances_x = 4, .depth = 8},
                                     {.name = "multiplier", .kind = LevelKind::compute, .instances_x = 4}}};
  const Problem problem = gemm_problem({.m = 2, .n = 4, .k = 1});
  const Mapping mapping{.loops = {{.level = 0, .dimension = 1, .bound = 4, .last = 4, .kind = LoopKind::spatial_x},
                                  {.level = 1, .dimension = 0, .bound = 2, .last = 2}},
                        .kept = {0b111, 0b111}};
  Evaluation result;
  ASSERT_TRUE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  // Half of three links to a cell. A: 2 words, each on to three more cells; B: 4 words; Z: 8 words.
  EXPECT_EQ(result.levels[0].network_pj, 1.5 * 2 + 6 + 1.5 * 4 + 1.5 * 8);
}

}  // namespace foretoken::evaluator_test
