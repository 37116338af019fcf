// A new device from a few timings of any networks or kernels on it, with the prices of a measured device as the prior.
//
// What a network takes is a sum over families of kernels: seconds on the known device times a level of the new one. The
// logarithms of the levels have a Gaussian prior: one step that all share (how fast the device is), one of each family
// around it. Timings move them; the posterior is taken as Gaussian around its maximum. How much families differ and how
// noisy timings are is a hypothesis each; all are averaged by how well they explain the timings.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "kernel/edge/edge_predictor.h"

namespace foretoken {

// Kernels whose speed on another device changes alike. The last three are the runtime's own time: for an operator that
// multiplies (which it prepares), for any other, and for being called.
enum class EdgeFamily { convolution, depthwise, product, tensor, setup, dispatch, call };
inline constexpr size_t edge_families = 7;
std::string_view edge_family_name(EdgeFamily family);
// A family with less of the time of every timing was not timed.
inline constexpr double least_timed_share = 0.05;
EdgeFamily edge_family(EdgeKernelKind kind);

// Seconds of a network or kernel on the known device, by family.
using EdgeFamilySeconds = std::array<double, edge_families>;

// Adds a kernel as it runs within a model, `count` times.
void add_family_seconds(EdgeFamilySeconds& sum, const EdgePredictor& known, const EdgeKernel& kernel, double count);
// What calling the runtime costs, once for each network.
void add_call_seconds(EdgeFamilySeconds& sum, const EdgePredictor& known);

// A network on the known device: joined as its runtime joins operators, and each operator by itself. Which of the two
// the new device's runtime does is found from the timings.
struct EdgeKnownTime {
  EdgeFamilySeconds joined{}, apart{};
};

struct EdgeTiming {
  EdgeKnownTime known;
  double seconds = 0;  // on the new device
};

// The same under one hypothesis of what is joined.
struct EdgeLogTiming {
  EdgeFamilySeconds known{};
  double log_seconds = 0;
};

// What is known about the levels of a device before it is timed: mean and standard deviation of their logarithms, apart
// from the step that all share.
struct EdgeLevelPrior {
  EdgeFamilySeconds mean{}, deviation{};
};
struct EdgeLevelPriors {
  EdgeLevelPrior joined, apart;  // of runtimes that join operators, and of those that do not
};
// From the 11 devices of HELP's tables with one picture at a time (docs/edge_adaptation.md).
const EdgeLevelPriors& measured_level_priors();

class AdaptedEdge {
 public:
  // At least one timing.
  explicit AdaptedEdge(std::span<const EdgeTiming> timings, const EdgeLevelPriors& priors = measured_level_priors());

  Estimate seconds(const EdgeKnownTime& known) const;
  // New over known seconds of a family, with a 90% interval: at least a factor of 6 either way where it was not timed.
  Estimate level(EdgeFamily family) const;
  // The largest share that the family has in the time of any timing.
  double timed_share(EdgeFamily family) const;
  // Families of which the timings say nothing: none has a noticeable share in any of them. Their levels are those of
  // the prior, and predictions of networks that consist of them have intervals as wide as those levels.
  std::vector<EdgeFamily> untimed() const;
  // How likely it is that the runtime joins operators as the known one.
  double joins() const;

 private:
  struct Hypothesis {
    bool joins = true;
    double weight = 0;
    double noise = 0;  // of a timing, as a logarithm
    EdgeFamilySeconds log_level{};
    std::array<double, edge_families * edge_families> covariance{};
    std::vector<EdgeFamilySeconds> timed_shares;  // of families in each timing
  };
  void add_hypothesis(bool joins, std::span<const EdgeLogTiming> timings, const EdgeLevelPrior& prior, double noise);

  std::vector<Hypothesis> hypotheses_;
};

// The known device's prices at the new one's levels: a predictor that `edge` takes. Intervals of kinds are those of
// their family, at least the known ones.
EdgePredictor adapted_predictor(const EdgePredictor& known, const AdaptedEdge& adapted);

// Each timing predicted from the others: mean of absolute errors, in percent. At least two timings.
double leave_one_out_mape(std::span<const EdgeTiming> timings);

}  // namespace foretoken
