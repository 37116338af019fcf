// The flags of speculative decoding, and the drafter they describe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/engine/draft_engine.h"

namespace foretoken {

struct SpeculationFlags {
  std::string config, acceptance;

  void declare(Options& options);
  bool given() const { return !config.empty(); }
  // The drafter beside a target. InputError for a config that is wrong.
  SpeculativeConfig read(const Model& target) const;
  // The model that the config names; nothing where the method needs none.
  std::optional<Model> draft_model(const SpeculativeConfig& read_config, const Library& library) const;
};

}  // namespace foretoken
