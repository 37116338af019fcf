#include "kernel/edge/find_fusion.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace foretoken {
namespace {

std::set<std::string> models_of(const FusionProbe& probe) {
  std::set<std::string> models = {probe.whole.model, probe.whole.empty_model};
  for (const FusionPart& part : probe.parts) {
    models.insert(part.model);
    models.insert(part.empty_model);
  }
  return models;
}

bool is_timed(const FusionProbe& probe, const FusionTimes& seconds) {
  return std::ranges::all_of(models_of(probe), [&](const std::string& model) { return seconds.contains(model); });
}

void keep_least(FusionTimes& least, const FusionTimes& seconds) {
  for (const auto& [model, time] : seconds) {
    const auto [known, is_new] = least.emplace(model, time);
    if (!is_new) known->second = std::min(known->second, time);
  }
}

}  // namespace

std::string_view fusion_verdict_name(FusionVerdict verdict) {
  switch (verdict) {
    case FusionVerdict::apart:
      return "apart";
    case FusionVerdict::fused:
      return "fused";
    default:
      return "unsure";
  }
}

FusionFinding judge_fusion(const FusionProbe& probe, const FusionTimes& seconds, const FindFusionOptions& options) {
  ensure(!probe.parts.empty(), "a chain has parts");
  FusionFinding finding{.name = probe.name, .chain = probe.chain};
  const double whole = seconds.at(probe.whole.model);
  finding.whole_seconds = whole - seconds.at(probe.whole.empty_model);
  double sum = 0, longest = 0, squares = whole * whole;
  for (const FusionPart& part : probe.parts) {
    const double time = seconds.at(part.model), own = time - seconds.at(part.empty_model);
    finding.part_seconds.push_back(own);
    sum += own;
    longest = std::max(longest, own);
    squares += time * time;
  }
  const double saved = sum - finding.whole_seconds, possible = sum - longest;
  const double noise = options.noise_share * std::sqrt(squares);
  if (possible > 0) {
    finding.saved_share = saved / possible;
    finding.noise_share = noise / possible;
  }
  const double beyond = saved - options.least_share * possible;
  if (possible > noise && beyond > noise) finding.verdict = FusionVerdict::fused;
  if (possible > noise && beyond < -noise) finding.verdict = FusionVerdict::apart;
  return finding;
}

FoundFusion find_fusion(const FusionPlan& plan, const FusionRunner& run, const FindFusionOptions& options) {
  FusionTimes least;
  std::vector<const FusionProbe*> open;
  for (const FusionProbe& probe : plan.probes) open.push_back(&probe);
  for (int pass = 0; pass < options.passes && !open.empty(); ++pass) {
    std::set<std::string> wanted;
    for (const FusionProbe* probe : open) wanted.merge(models_of(*probe));
    keep_least(least, run(std::vector<std::string>(wanted.begin(), wanted.end())));
    std::erase_if(open, [&](const FusionProbe* probe) {
      if (!is_timed(*probe, least)) return true;
      return pass > 0 && judge_fusion(*probe, least, options).verdict != FusionVerdict::unsure;
    });
  }
  FoundFusion result;
  for (const FusionProbe& probe : plan.probes) {
    if (is_timed(probe, least)) {
      result.findings.push_back(judge_fusion(probe, least, options));
    } else {
      result.not_run.push_back(probe.name);
    }
  }
  return result;
}

}  // namespace foretoken
