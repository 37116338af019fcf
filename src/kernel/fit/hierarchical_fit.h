// Fits the constants of a physical form to measurements from several devices at once. The logarithm of each constant is
// a sum of effects (common, by trait, by class of kernel, by device, ...), each pulled towards zero with its own
// strength: what is common ports to a device nobody measured, and an odd device bends it by its share only.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace foretoken {

// Rows measured under the same effects (say one device and dtype).
struct FitGroup {
  std::vector<size_t> effects;  // indices into HierarchicalFit::effects
  size_t first_row = 0, rows = 0;
  double weight = 1;  // of the group's mean loss
};

// A vector of offsets, one per constant.
struct FitEffect {
  std::string name;
  double strength = 0.1;  // penalty per squared offset, averaged over constants
  bool fixed = false;
  std::vector<double> offsets;  // current value; also where the penalty pulls to if pull_to_start
  bool pull_to_start = false;   // the common effect is pulled to its start, the others to zero
};

struct FitBounds {
  double least = -20, most = 20;  // of the logarithm of a constant
};

// log(predicted / measured) of a row under the given log constants. `choice` is the discrete choice inside the form (a
// tile): -1 asks for the best one and returns it; a value >= 0 must be kept, so that derivatives are smooth.
using RowError = std::function<double(size_t row, std::span<const double> log_constants, int& choice)>;

struct HierarchicalFit {
  size_t constants = 0;
  std::vector<FitBounds> bounds;  // per constant
  std::vector<FitEffect> effects;
  std::vector<FitGroup> groups;
  double huber_scale = 0.05;  // errors beyond this count linearly
  int rounds = 30;
};

// Sum of a group's effects, clamped to the bounds.
std::vector<double> log_constants(const HierarchicalFit& fit, std::span<const size_t> effects);

// Levenberg-Marquardt on the pseudo-Huber loss; changes the offsets of effects that are not fixed. Returns the final
// loss.
double solve(HierarchicalFit& fit, const RowError& error,
             const std::function<void(int round, double loss)>& progress = {});

}  // namespace foretoken
