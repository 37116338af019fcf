// What the links of a mesh carry when a level sends words to the instances below it, or they send words up.
//
// Words pass by dimension order. From ports they come in at an edge, half way across and down on average; between
// instances over which the level is spread, a third of the way each (Dally and Towles, Principles and Practices of
// Interconnection Networks, 2004, chapters 3 and 25). A word for several instances goes on by one more link to each.
#pragma once

#include "accelerator/architecture.h"

namespace foretoken {

struct MeshSide {
  double across = 1, down = 1;  // instances below with work
};

// Words over all links: `entering` ones reach `leaving` instances in all.
double link_words(const MeshLinks& mesh, const MeshSide& side, double entering, double leaving);

// Cycles of the busiest link, of one mesh. Zero where nothing leaves the instance that holds it.
double mesh_cycles(const MeshLinks& mesh, const MeshSide& side, double entering, double passed);

// From the farthest source to the farthest instance.
double farthest_hops(const MeshSide& side);

}  // namespace foretoken
