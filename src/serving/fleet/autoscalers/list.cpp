// Add your line here; the name is what users type.
#include "serving/fleet/autoscalers/list.h"

#include "base/error.h"

namespace foretoken {
namespace {

std::unique_ptr<Autoscaler> make_none(const AutoscalerSettings& /*settings*/) {
  return nullptr;
}

constexpr AutoscalerKind listed_autoscalers[] = {
    {"none", "the number at the start", false, make_none},
    {"reactive", "keeps outstanding requests or KV use per replica at a target (Kubernetes)", false, make_reactive},
    {"predictive", "follows the trend of the arrival rate, one cold start ahead", true, make_predictive},
    {"seasonal", "uses the arrival rate one period ago, scaled to the current level", true, make_seasonal},
    {"planner", "divides the rate and lengths of the last interval by the capacity of a replica (Dynamo's planner)",
     true, make_planner},
};

}  // namespace

std::span<const AutoscalerKind> autoscaler_kinds() {
  return listed_autoscalers;
}

std::vector<std::string> autoscaler_names() {
  std::vector<std::string> names;
  for (const AutoscalerKind& kind : listed_autoscalers) names.emplace_back(kind.name);
  return names;
}

const AutoscalerKind& autoscaler_kind(std::string_view name) {
  for (const AutoscalerKind& kind : listed_autoscalers) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = autoscaler_names();
  throw InputError({.field = "autoscaler",
                    .value = std::string(name),
                    .expected = "the name of an autoscaler",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
