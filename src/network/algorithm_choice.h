// Which algorithm and protocol a collective runs with: the one that a cost model expects to be fastest, as NCCL's tuner
// does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "network/closed_form.h"

namespace foretoken {

struct AlgorithmAndProtocol {
  const CollectiveAlgorithm* algorithm = nullptr;
  Protocol protocol = Protocol::simple;
};

std::string candidate_text(const AlgorithmAndProtocol& candidate);  // "ring ll128"

// What a user asked for.
struct ChoiceRequest {
  // "auto": what NCCL has for this collective; "best": every algorithm that suits; else a name.
  std::string algorithm = "auto";
  std::optional<Protocol> protocol;  // nothing: every one that the links allow
};

// What the machine allows.
struct ChoiceLimits {
  bool nvlink = false;             // ll128 relies on its 128-byte stores
  bool reduces_in_switch = false;  // NVSwitch from Hopper on, or a switch of a topology
  bool is_ideal = false;           // links only, no software: one protocol
};

// InputError where the algorithm or protocol asked for does not suit, with the reason.
std::vector<AlgorithmAndProtocol> candidates(CollectiveKind kind, const GroupShape& shape, const ChoiceRequest& request,
                                             const ChoiceLimits& limits);

struct Choice {
  AlgorithmAndProtocol chosen;
  ClosedForm time;
  std::string why;
};

// The fastest of the candidates; the earlier one of equals.
Choice choose(const std::vector<AlgorithmAndProtocol>& candidates,
              const std::function<ClosedForm(const AlgorithmAndProtocol&)>& time_of);

}  // namespace foretoken
