// The closed form of latency against an event simulation of small nests on chips with one instance of each level.
//
// What the simulation is told: a level holds `buffers` tiles of each tensor. A tile is on its way in from the moment
// that a slot is free and the level above has the words; compute waits for the tiles it needs; complete or partial sums
// go out when nothing below adds to them any more, and only then is their slot free. A port moves one tile at a time,
// the one that is needed soonest first, those of outer levels before those of inner ones; a transfer takes the ports at
// both its ends, for as long as the slower needs. Nothing else is shared, and no order is planned ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <fmt/format.h>

#include "accelerator/evaluator.h"
#include "accelerator/tile.h"
#include "base/random.h"

namespace foretoken::latency_simulation_test {

constexpr double never = std::numeric_limits<double>::infinity();

// A tile of a tensor in a level, from the first to the last step of compute that uses it.
struct Visit {
  int level = 0, tensor = 0;
  int parent = -1, before = -1;  // visits: that it is cut from; whose slot it takes
  std::vector<int> inside;       // visits of the next level cut from it
  int first_step = 0, last_step = 0;
  double words = 0;
  bool written = false, seen_before = false;
  double loaded = never;   // when all its words are there
  double retired = never;  // when its slot is free
};

struct Transfer {
  int visit = 0;
  bool out = false;
  double done = never;
};

class Chip {
 public:
  Chip(const Architecture& architecture, const Problem& problem, const Mapping& mapping)
      : architecture_(architecture), problem_(problem), storage_(static_cast<int>(architecture.levels.size()) - 1) {
    for (const Loop& loop : mapping.loops) {
      if (loop.level + 1 < storage_) {
        outer_.push_back(loop);
      } else {
        step_cycles_ *= static_cast<double>(loop.bound);
      }
    }
    for (const Loop& loop : outer_) steps_ *= static_cast<int>(loop.bound);
    for (int t = 0; t < std::ssize(problem.tensors); ++t) add_visits(mapping, t);
    needed_.resize(steps_);
    for (int i = 0; i < std::ssize(visits_); ++i) {
      if (visits_[i].level + 1 != storage_) continue;
      for (int step = visits_[i].first_step; step <= visits_[i].last_step; ++step) needed_[step].push_back(i);
    }
  }

  double cycles() {
    while (true) {
      while (start_something()) {
      }
      double next = compute_ends_;
      for (const Transfer& transfer : moving_) next = std::min(next, transfer.done);
      if (next == never) break;
      now_ = next;
      end_what_is_done();
    }
    EXPECT_EQ(computed_, steps_) << "the simulation has come to a stop";
    return now_;
  }

 private:
  void add_visits(const Mapping& mapping, int tensor) {
    const ProblemTensor& own = problem_.tensors[tensor];
    std::vector<int> above(steps_, -1);  // visit of the level above, by step
    for (int level = 1; level < storage_; ++level) {
      const double words = tile_words(own, tile_at(mapping, problem_, level));
      // What the loops outside the level are at, over the tensor's dimensions, up to the innermost that moves the tile.
      int moves = -1;
      for (int i = 0; i < std::ssize(outer_); ++i) {
        if (outer_[i].level < level && uses_dimension(own, outer_[i].dimension)) moves = i;
      }
      std::set<std::vector<int>> seen;
      std::vector<int> turn_before, here(steps_, -1);
      int before = -1;
      for (int step = 0; step < steps_; ++step) {
        const auto [turn, place] = turn_of(step, moves, own);
        if (step == 0 || turn != turn_before) {
          visits_.push_back({.level = level,
                             .tensor = tensor,
                             .parent = above[step],
                             .before = before,
                             .first_step = step,
                             .words = words,
                             .written = own.written,
                             .seen_before = !seen.insert(place).second});
          before = static_cast<int>(visits_.size()) - 1;
          if (above[step] >= 0) visits_[above[step]].inside.push_back(before);
        }
        visits_[before].last_step = step;
        here[step] = before;
        turn_before = turn;
      }
      above = here;
    }
  }

  // Digits of all loops down to `moves`, and of those alone that say which tile it is.
  std::pair<std::vector<int>, std::vector<int>> turn_of(int step, int moves, const ProblemTensor& tensor) const {
    std::vector<int> turn, place;
    int64_t left = step;
    for (int i = static_cast<int>(outer_.size()) - 1; i >= 0; --i) {
      const int digit = static_cast<int>(left % outer_[i].bound);
      left /= outer_[i].bound;
      if (i > moves) continue;
      turn.push_back(digit);
      if (uses_dimension(tensor, outer_[i].dimension)) place.push_back(digit);
    }
    return {turn, place};
  }

  double rate(int level, bool out) const {
    const LevelBandwidth& own = architecture_.levels[level].bandwidth;
    return own.shared ? *own.shared : (out ? own.write : own.read).value_or(0);
  }

  // Ports that a transfer between `level` and the one inside it takes; one without a limit has room for all.
  bool takes_port(int level, bool out, int port_level, bool written) const {
    const LevelBandwidth& port = architecture_.levels[port_level].bandwidth;
    if (level == port_level) return port.shared || out == written;
    return level + 1 == port_level && rate(port_level, written) > 0 && (port.shared || out != written);
  }

  bool port_is_free(int level, bool out) const {
    return std::ranges::none_of(moving_, [&](const Transfer& other) {
      const int above = visits_[other.visit].level - 1;
      return takes_port(above, other.out, level, out) ||
             (rate(level + 1, !out) > 0 && takes_port(above, other.out, level + 1, !out));
    });
  }

  // Of the two ports that a transfer takes, the slower one; 0 = no limit.
  double transfer_rate(int level, bool out) const {
    const double above = rate(level, out), below = rate(level + 1, !out);
    return above > 0 && below > 0 ? std::min(above, below) : std::max(above, below);
  }

  bool has_slot(const Visit& visit) const {
    int older = visit.before;
    for (int i = 1; i < architecture_.levels[visit.level].buffers && older >= 0; ++i) older = visits_[older].before;
    return older < 0 || visits_[older].retired <= now_;
  }

  bool can_go(int index, bool out) const {
    const Visit& visit = visits_[index];
    if (started_.contains({index, out})) return false;
    const double above = visit.parent < 0 ? 0 : visits_[visit.parent].loaded;
    if (!out) return above <= now_ && has_slot(visit);
    const bool complete = visit.level + 1 == storage_
                              ? computed_ > visit.last_step
                              : std::ranges::all_of(visit.inside, [&](int i) { return visits_[i].retired <= now_; });
    return visit.written && visit.loaded <= now_ && complete;
  }

  bool start_something() {
    bool any = false;
    for (int level = 0; level + 1 < storage_; ++level) any = start_transfer(level) || any;
    if (compute_ends_ == never && computed_ < steps_ &&
        std::ranges::all_of(needed_[computed_], [&](int i) { return visits_[i].loaded <= now_; })) {
      compute_ends_ = now_ + step_cycles_;
      any = true;
    }
    return any;
  }

  bool start_transfer(int level) {
    int soonest = -1;
    bool goes_out = false;
    for (int i = 0; i < std::ssize(visits_); ++i) {
      const Visit& visit = visits_[i];
      if (visit.level - 1 != level) continue;
      for (const bool out : {false, true}) {
        if (!can_go(i, out)) continue;
        if (!out && visit.written && !visit.seen_before) {  // sums start at nothing
          started_.insert({i, false});
          visits_[i].loaded = now_;
          return true;
        }
        if (!port_is_free(level, out)) continue;
        if (soonest < 0 || needed_at(i, out) < needed_at(soonest, goes_out)) {
          soonest = i;
          goes_out = out;
        }
      }
    }
    if (soonest < 0) return false;
    started_.insert({soonest, goes_out});
    const double own_rate = transfer_rate(level, goes_out);
    moving_.push_back(
        {.visit = soonest, .out = goes_out, .done = now_ + (own_rate > 0 ? visits_[soonest].words / own_rate : 0)});
    return true;
  }

  // A sum's slot is needed by the visit that takes it.
  int needed_at(int index, bool out) const {
    return out ? visits_[index].last_step + architecture_.levels[visits_[index].level].buffers
               : visits_[index].first_step;
  }

  void end_what_is_done() {
    if (compute_ends_ <= now_) {
      compute_ends_ = never;
      ++computed_;
    }
    std::erase_if(moving_, [&](const Transfer& transfer) {
      if (transfer.done > now_) return false;
      Visit& visit = visits_[transfer.visit];
      (transfer.out ? visit.retired : visit.loaded) = now_;
      return true;
    });
    for (Visit& visit : visits_) {
      if (visit.written || visit.retired <= now_ || visit.loaded > now_) continue;
      const bool used = visit.level + 1 == storage_
                            ? computed_ > visit.last_step
                            : std::ranges::all_of(visit.inside, [&](int i) { return visits_[i].loaded <= now_; });
      if (used) visit.retired = now_;
    }
  }

  const Architecture& architecture_;
  const Problem& problem_;
  int storage_;
  std::vector<Loop> outer_;  // that move tiles
  double step_cycles_ = 1;   // of compute with tiles that stay
  int steps_ = 1;
  std::vector<Visit> visits_;
  std::vector<std::vector<int>> needed_;  // visits, by step
  std::set<std::pair<int, bool>> started_;
  std::vector<Transfer> moving_;
  double now_ = 0, compute_ends_ = never;
  int computed_ = 0;
};

struct Nest {
  Architecture chip;
  Problem problem;
  Mapping mapping;
};

enum class InnerPorts {
  read,            // words that come in take nothing from those that go out
  read_and_write,  // nor here, but they have a limit of their own
  shared
};

struct NestKind {
  int levels = 2;  // of memory
  int buffers = 1;
  bool shared_port = true;  // of the outermost one
  InnerPorts inner_ports = InnerPorts::read;
};

Nest random_nest(RandomStream& random, const NestKind& kind) {
  const auto any = [&](uint64_t least, uint64_t most) {
    return static_cast<int64_t>(least + random.below(most - least + 1));
  };
  Nest nest{.chip = {.name = "chip"}, .problem = {}, .mapping = {}};
  std::array<int64_t, 3> size = {1, 1, 1};
  for (int level = 0; level < kind.levels; ++level) {
    AcceleratorLevel own{.name = "memory" + std::to_string(level), .buffers = level == 0 ? 1 : kind.buffers};
    own.access_cycles = 0;
    const auto any_rate = [&] { return 0.25 * static_cast<double>(any(1, 16)); };
    const double rate = any_rate();
    // The innermost one feeds the multiplier as fast as it asks.
    if (level + 1 < kind.levels) {
      if (level > 0 ? kind.inner_ports == InnerPorts::shared : kind.shared_port) {
        own.bandwidth.shared = rate;
      } else {
        own.bandwidth.read = rate;
        if (level == 0 || kind.inner_ports == InnerPorts::read_and_write) own.bandwidth.write = any_rate();
      }
    }
    nest.chip.levels.push_back(own);
    std::array<int, 3> order = {0, 1, 2};
    for (size_t i = 2; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    for (const int dimension : order) {
      const int64_t bound = any(1, kind.levels == 2 ? 4 : 3);
      if (bound == 1) continue;
      nest.mapping.loops.push_back({.level = level, .dimension = dimension, .bound = bound, .last = bound});
      size[dimension] *= bound;
    }
    nest.mapping.kept.push_back(0b111);
  }
  nest.chip.levels.push_back({.name = "multiplier", .kind = LevelKind::compute});
  nest.problem = gemm_problem({.m = size[0], .n = size[1], .k = size[2]});
  return nest;
}

int64_t moving_steps(const Nest& nest) {
  int64_t steps = 1;
  for (const Loop& loop : nest.mapping.loops) {
    if (loop.level + 2 < std::ssize(nest.chip.levels)) steps *= loop.bound;
  }
  return steps;
}

struct Comparison {
  int nests = 0, exact = 0;
  double mean = 0, least = never, most = -never;  // of closed form over simulation, less 1
};

std::string text(const Comparison& found) {
  return fmt::format("mean {:.4f}, least {:.4f}, most {:.4f}, exact {} of {}", found.mean, found.least, found.most,
                     found.exact, found.nests);
}

Comparison compare(const NestKind& kind, int nests) {
  RandomStream random(17, "latency " + std::to_string(kind.levels * 100 + kind.buffers * 10 + kind.shared_port));
  Comparison result;
  while (result.nests < nests) {
    const Nest nest = random_nest(random, kind);
    if (moving_steps(nest) > 128) continue;
    ++result.nests;
    Evaluation closed;
    EXPECT_TRUE(MappingEvaluator(nest.chip, nest.problem).evaluate(nest.mapping, closed));
    const double simulated = Chip(nest.chip, nest.problem, nest.mapping).cycles();
    const double off = closed.latency_cycles() / simulated - 1;
    // The closed form ends in a whole cycle.
    if (std::abs(closed.latency_cycles() - simulated) < 1) ++result.exact;
    result.mean += off / nests;
    result.least = std::min(result.least, off);
    result.most = std::max(result.most, off);
  }
  return result;
}

// Nothing is beside anything: the closed form has to be the simulation.
TEST(LatencySimulation, one_buffer_behind_one_port_is_exact) {
  const Comparison found = compare({.buffers = 1}, 100);
  EXPECT_EQ(found.exact, found.nests) << text(found);
}

// Sums of transfers and of compute are compared, not those of each step: where few steps bring most words, the
// simulation waits for some that the closed form hides. The slack above is that of which tile the port takes first.
TEST(LatencySimulation, two_buffers_hide_what_the_closed_form_says_unless_steps_differ) {
  for (const bool shared_port : {true, false}) {
    const Comparison found = compare({.buffers = 2, .shared_port = shared_port}, 100);
    SCOPED_TRACE(fmt::format("shared {}: {}", shared_port, text(found)));
    EXPECT_GT(found.exact, 70);
    EXPECT_NEAR(found.mean, 0, 0.02);
    EXPECT_GT(found.least, -0.15);
    EXPECT_LT(found.most, 0.01);
  }
}

// The closed form does one transfer after the other; what goes out passes what comes in on a port of its own.
TEST(LatencySimulation, ports_of_their_own_only_shorten_what_one_buffer_waits_for) {
  const Comparison found = compare({.buffers = 1, .shared_port = false}, 100);
  EXPECT_NEAR(found.mean, 0.08, 0.04) << text(found);
  EXPECT_GT(found.least, -1e-9) << text(found);
}

// A single buffer in the middle is free as soon as its last words are copied further in, so its next tile comes beside
// the last compute; the closed form adds both.
TEST(LatencySimulation, of_three_memories) {
  const Comparison single = compare({.levels = 3, .buffers = 1}, 40);
  EXPECT_GT(single.least, -1e-9) << text(single);
  EXPECT_LT(single.mean, 0.2) << text(single);
  const Comparison twice = compare({.levels = 3, .buffers = 2}, 40);
  // Tiles on their way further in and sums on their way out wait for each other at the port of the one in the middle.
  EXPECT_NEAR(twice.mean, 0, 0.04) << text(twice);
  EXPECT_GT(twice.least, -0.2) << text(twice);
  EXPECT_LT(twice.most, 0.1) << text(twice);
}

// The one in the middle has a limit to what comes in as well: of its own, or on the port that all its words take.
TEST(LatencySimulation, of_three_memories_with_ports_for_what_comes_in) {
  for (const InnerPorts ports : {InnerPorts::read_and_write, InnerPorts::shared}) {
    const Comparison single = compare({.levels = 3, .buffers = 1, .inner_ports = ports}, 40);
    const Comparison twice = compare({.levels = 3, .buffers = 2, .inner_ports = ports}, 40);
    SCOPED_TRACE(fmt::format("{}: one buffer {}; two {}", ports == InnerPorts::shared ? "shared" : "read and write",
                             text(single), text(twice)));
    // The closed form does one transfer after the other, which is never faster.
    EXPECT_GT(single.least, -1e-9);
    EXPECT_LT(single.mean, 0.2);
    // With two, what waits at the port in the middle is not hidden as well as it says.
    EXPECT_NEAR(twice.mean, -0.095, 0.03);
    EXPECT_GT(twice.least, -0.35);
    EXPECT_LT(twice.most, 0.03);
  }
}

}  // namespace foretoken::latency_simulation_test
