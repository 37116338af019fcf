#include "accelerator/mesh_load.h"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

// Of words from anywhere to anywhere along a row of `side` instances, those that cross its middle one way.
double crossing_share(double side) {
  return std::floor(side / 2) * std::ceil(side / 2) / (side * side);
}

double links(const MeshSide& side) {
  return 2 * (side.across * (side.down - 1) + side.down * (side.across - 1));  // both ways
}

double mean_hops(const MeshLinks& mesh, const MeshSide& side) {
  if (mesh.ports > 0) return (side.across + side.down - 2) / 2;
  return (side.across - 1 / side.across + side.down - 1 / side.down) / 3;
}

}  // namespace

double link_words(const MeshLinks& mesh, const MeshSide& side, double entering, double leaving) {
  if (side.across * side.down <= 1) return 0;
  return entering * mean_hops(mesh, side) + std::max(0.0, leaving - entering);
}

double mesh_cycles(const MeshLinks& mesh, const MeshSide& side, double entering, double passed) {
  if (mesh.words_per_cycle <= 0 || entering <= 0) return 0;
  double busiest = 0;
  if (mesh.ports > 0) {
    busiest = entering / static_cast<double>(mesh.ports);
    if (const double all = links(side); all > 0) busiest = std::max(busiest, passed / all);
  } else if (const double alone = entering * mean_hops(mesh, side); alone > 0) {
    const double crossing = std::max(crossing_share(side.across) / side.down, crossing_share(side.down) / side.across);
    busiest = entering * crossing * (passed / alone);  // words for several instances load links in proportion
  }
  return busiest / mesh.words_per_cycle;
}

double farthest_hops(const MeshSide& side) {
  return side.across + side.down - 2;
}

}  // namespace foretoken
