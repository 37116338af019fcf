#include "network/algorithm_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "network/transfer/refusal.h"

namespace foretoken {
namespace {

std::string unsuitable(const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupShape& shape,
                       const ChoiceLimits& limits) {
  const std::string why = algorithm.unsuitable(kind, shape);
  if (!why.empty() || !algorithm.needs_reducing_switch || limits.reduces_in_switch) return why;
  return "in-switch needs switches that reduce: NVSwitch of Hopper or later";
}

std::string unsuitable(Protocol protocol, const CollectiveAlgorithm& algorithm, const ChoiceLimits& limits) {
  if (protocol == Protocol::ideal) return {};
  if (protocol != Protocol::simple && algorithm.simple_only)
    return fmt::format("{} runs with the protocol simple only", algorithm.name);
  if (protocol == Protocol::ll128 && !limits.nvlink) return "ll128 needs NVLink";
  return {};
}

void add_protocols(const CollectiveAlgorithm& algorithm, const ChoiceRequest& request, const ChoiceLimits& limits,
                   std::vector<AlgorithmAndProtocol>& found) {
  if (request.protocol) {
    if (unsuitable(*request.protocol, algorithm, limits).empty()) found.push_back({&algorithm, *request.protocol});
    return;
  }
  if (limits.is_ideal) {
    found.push_back({&algorithm, Protocol::ideal});
    return;
  }
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    if (unsuitable(protocol, algorithm, limits).empty()) found.push_back({&algorithm, protocol});
  }
}

}  // namespace

std::string candidate_text(const AlgorithmAndProtocol& candidate) {
  return fmt::format("{} {}", candidate.algorithm->name, protocol_name(candidate.protocol));
}

std::vector<AlgorithmAndProtocol> candidates(CollectiveKind kind, const GroupShape& shape, const ChoiceRequest& request,
                                             const ChoiceLimits& limits) {
  std::vector<AlgorithmAndProtocol> found;
  const bool any = request.algorithm == "best", by_name = !any && request.algorithm != "auto";
  if (by_name) {
    const CollectiveAlgorithm& algorithm = collective_algorithm(request.algorithm);
    const std::string why = unsuitable(algorithm, kind, shape, limits);
    if (!why.empty())
      refuse_collective("algorithm", request.algorithm, fmt::format("an algorithm that suits: {}", why));
    if (request.protocol) {
      const std::string no_protocol = unsuitable(*request.protocol, algorithm, limits);
      if (!no_protocol.empty()) refuse_collective("protocol", protocol_name(*request.protocol), no_protocol);
    }
    add_protocols(algorithm, request, limits, found);
    return found;
  }
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (!any && !algorithm.nccl_considers(kind, shape)) continue;
    if (unsuitable(algorithm, kind, shape, limits).empty()) add_protocols(algorithm, request, limits, found);
  }
  if (found.empty()) {
    ensure(request.protocol.has_value(), "every collective has an algorithm with some protocol");
    refuse_collective("protocol", protocol_name(*request.protocol),
                      "a protocol that suits these links: ll, ll128 (NVLink), simple");
  }
  return found;
}

Choice choose(const std::vector<AlgorithmAndProtocol>& candidates,
              const std::function<ClosedForm(const AlgorithmAndProtocol&)>& time_of) {
  ensure(!candidates.empty(), "there is something to choose from");
  std::vector<std::pair<double, const AlgorithmAndProtocol*>> order;
  Choice choice;
  for (const AlgorithmAndProtocol& candidate : candidates) {
    const ClosedForm time = time_of(candidate);
    if (choice.chosen.algorithm == nullptr || time.total() < choice.time.total()) {
      choice.chosen = candidate;
      choice.time = time;
    }
    order.emplace_back(time.total().value(), &candidate);
  }
  if (order.size() == 1) {
    choice.why = "the only algorithm available here";
    return choice;
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  choice.why = fmt::format("fastest by its formula ({}); ", duration_text(order.front().first));
  const size_t shown = std::min<size_t>(order.size(), 3);
  for (size_t i = 1; i < shown; ++i) {
    choice.why +=
        fmt::format("{}{} {}", i == 1 ? "" : ", ", candidate_text(*order[i].second), duration_text(order[i].first));
  }
  if (order.size() > shown) choice.why += fmt::format(", {} more", order.size() - shown);
  return choice;
}

}  // namespace foretoken
