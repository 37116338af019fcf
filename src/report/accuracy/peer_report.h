// Other prediction tools that were run beside foretoken on the same work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace foretoken {

// One figure that both tools give for the same work.
struct PeerFigure {
  std::string name;
  double own = 0, peer = 0;
  std::optional<double> measured;  // else the two are compared with each other
};

struct PeerRun {
  std::string name;
  std::string work;         // what both were asked
  std::string found;        // where it is installed; empty = it is not
  std::string not_run;      // why it was found and not run
  std::string compared_in;  // the page of our documentation that compares; may be empty
  double own_seconds = 0, peer_seconds = 0;
  std::vector<PeerFigure> figures;
};

// The tool's own error and ours, in percent of what was measured; nothing where no figure was measured.
struct PeerErrors {
  double own = 0, peer = 0;
};
std::optional<PeerErrors> peer_errors(const PeerRun& run);
// How far the two are apart, in percent of the peer's figures; nothing without figures.
std::optional<double> peer_difference(const PeerRun& run);

std::string peers_text(const std::vector<PeerRun>& runs);
Json peers_json(const std::vector<PeerRun>& runs);  // without times, which differ from run to run

}  // namespace foretoken
