// One number of an accelerator's design that a search may change, with the values it may take.
#pragma once

#include <string>
#include <vector>

#include "accelerator/architecture.h"

namespace foretoken {

enum class KnobKind {
  capacity,   // bytes of one instance
  depth,      // accesses that one instance holds
  across,     // instances in one of the level around it, along x
  down,       // and along y
  bandwidth,  // words per cycle of one instance
  word_bits,  // of all levels at once: capacities and bandwidths keep their bits
};

struct Knob {
  std::string level;  // "all" for word_bits
  KnobKind kind = KnobKind::capacity;
  std::vector<double> values;  // rising, no two equal

  std::string name() const;  // as users type it: GLB.capacity
};

// "GLB.capacity=32K,64K": also depth, x, y, bandwidth and all.word-bits; the case of a level's name does not matter.
// `source` names the text in errors. InputError for a level or number that is not there and for values it cannot take.
Knob parse_knob(const std::string& source, const std::string& text, const Architecture& base);

// Powers of two around the base: sizes of storage a quarter to four times, sides of arrays and the bandwidth of the
// outermost level half to twice.
std::vector<Knob> automatic_knobs(const Architecture& base);

// Nothing is below zero: 0 where the base does not limit it.
double knob_value(const Architecture& architecture, const Knob& knob);
void set_knob(Architecture& architecture, const Knob& knob, double value);

std::string knob_value_text(const Knob& knob, double value);  // for people: "64 KiB"

}  // namespace foretoken
