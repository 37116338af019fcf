// A custom accelerator: storage, network and compute levels from the memory outside down to the multipliers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

constexpr int max_accelerator_levels = 24;

enum class LevelKind {
  storage,
  network,  // keeps nothing; its loops only spread work over the instances below
  compute,
};

// Energy of one access to one instance, in picojoules. An access moves words_per_access words.
struct AccessEnergy {
  double read_pj = 0;
  double fill_pj = 0;     // a write of data from above
  double update_pj = 0;   // a write of a partial sum from below
  double compute_pj = 0;  // one multiply-accumulate
  double leak_pj_per_cycle = 0;
  double hop_pj_per_word = 0;  // network between this level and the one below, per link passed
};

// Words per cycle of one instance; nothing = not a limit.
struct LevelBandwidth {
  std::optional<double> read, write, shared;
};

// A mesh of links from a level to the instances below it, as between the chiplets of a package.
struct MeshLinks {
  double words_per_cycle = 0;  // of one link, each way; 0 = there is no such mesh
  int64_t ports = 0;           // links by which words enter; 0 = the level is spread over the instances below
  double hop_cycles = 0, hop_pj_per_word = 0;
};

// Rows and banks of a DRAM: a row must be opened before its words move, one row at a time in each bank.
struct DramRows {
  int64_t row_bytes = 0;     // of one channel; 0 = words cost the same wherever they lie
  int banks = 1;             // of one channel
  int channels = 1;          // addresses are spread over them, so that rows open on all of them together
  double switch_ns = 0;      // from one row of a bank to another: precharge and activate
  double gap_ns = 0;         // between two activates of a channel
  double refresh_share = 0;  // of the time, in which nothing moves
  double activate_pj = 0;    // of one row of one channel, beyond the energy of its words
};

// Converters that sums pass on their way into a level, as below an array of analog cells.
struct AnalogConverter {
  int bits = 0;            // 0 = sums come in as they are
  double conversions = 1;  // of one sum: columns that hold a weight, times steps of an input
  double conversions_per_second = 0;
  double extra_pj = 0;  // beside each conversion: shift and add
};

struct AcceleratorLevel {
  std::string name;
  LevelKind kind = LevelKind::storage;
  std::string component;  // what it is built of: SRAM, DRAM, regfile ...; selects energies where none are given
  // Instances in the whole chip, as a grid. A level's fan-out is the grid below it divided by its own.
  int64_t instances_x = 1, instances_y = 1;
  int word_bits = 8;
  int words_per_access = 1;
  int64_t depth = 0;  // accesses it can hold; 0 = unlimited
  int banks = 1;
  // Instances that share one wide memory: each has its words, an access costs the whole width (Timeloop's
  // cluster_size).
  int cluster_size = 1;
  int buffers = 1;           // copies of a tile held at once; 2 = the next is filled while one is in use
  double access_cycles = 1;  // from asking for a word to having it
  double hop_cycles = 0;  // from an instance below to its neighbour, where words travel through them: systolic arrays
  LevelBandwidth bandwidth;
  MeshLinks mesh;  // to the instances below
  DramRows rows;
  AnalogConverter converter;
  double operation_cycles = 1;    // of a compute level: bit-serial multipliers take several
  bool multicast = true;          // one read serves all instances below that want the same word
  bool spatial_reduction = true;  // partial sums of instances below are added on their way up
  bool neighbour_links = false;   // instances below pass overlapping words to each other
  AccessEnergy energy;
  double area_um2 = 0;  // of one instance
};

// Lanes beside the array for what multiplies nothing: softmax, norms, activations, rotations, casts.
struct VectorLanes {
  double operations_per_cycle = 0;  // 0 = not said
  double operation_pj = 0;          // 0 = not said: that of a multiply-accumulate
};

struct Architecture {
  std::string name;
  double clock_hz = 1e9;
  int technology_nm = 0;                 // 0 = not said
  std::vector<AcceleratorLevel> levels;  // outermost first; the last one computes
  int sum_bits = 0;                      // of a partial sum; 0 = not said
  VectorLanes vector;
};

// Nothing when the architecture can be evaluated; else what is wrong with it.
std::string architecture_fault(const Architecture& architecture);

int64_t instances(const AcceleratorLevel& level);
int64_t words_held(const AcceleratorLevel& level);  // of one instance and one of its buffers; 0 = unlimited
// How many instances of the next level hang below one of `level`, across and down.
int64_t fanout_x(const Architecture& architecture, size_t level);
int64_t fanout_y(const Architecture& architecture, size_t level);
int find_level(const Architecture& architecture, std::string_view name);  // -1 when there is none
std::vector<std::string> level_names(const Architecture& architecture);
double area_um2(const Architecture& architecture);
// Of all multipliers with work for each.
double operations_per_cycle(const Architecture& architecture);
// One for each column of the array where the design says nothing.
double vector_operations_per_cycle(const Architecture& architecture);

}  // namespace foretoken
