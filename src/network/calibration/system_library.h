// Traits of systems by name, each read once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hardware/catalogue.h"
#include "network/calibration/communication_call.h"

namespace foretoken {

class SystemLibrary {
 public:
  explicit SystemLibrary(const HardwareCatalogue& hardware) : hardware_(hardware) {}

  // InputError for a name that nobody knows, or a device without links.
  const SystemTraits& traits(const std::string& name) const;
  const std::string& generation(const std::string& name) const;

  // Of those names, the ones of the same generation, the nearest link rate first; without the system itself.
  std::vector<SystemTraits> siblings(const std::string& name, const std::vector<std::string>& measured) const;
  // The same of a device that need not be in the catalogue.
  std::vector<SystemTraits> siblings_of(const SystemTraits& own, const std::string& generation,
                                        const std::vector<std::string>& measured) const;

 private:
  struct Known {
    SystemTraits traits;
    std::string generation;
  };
  const Known& known(const std::string& name) const;
  const std::string& generation_without_node(const std::string& name) const;
  const HardwareCatalogue& hardware_;
  mutable std::map<std::string, Known> known_;
  mutable std::map<std::string, std::string> generations_;
};

}  // namespace foretoken
