// The accelerators that ship in data/accelerators, and users' own files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accelerator/energy/energy_library.h"
#include "accelerator/formats/architecture_json.h"

namespace foretoken {

struct LoadedDesign {
  AcceleratorDesign design;              // every level with energies
  std::vector<EnergyFill> from_library;  // which of them the file did not give
};

// Names are file stems; case, '-', '_' and ' ' do not matter. Anything with a slash or ending in .json is a path.
class AcceleratorCatalogue {
 public:
  // `folder` holds designs/ and energy.json. InputError when either is missing.
  explicit AcceleratorCatalogue(const std::filesystem::path& folder);

  // InputError with the nearest name for one nobody knows.
  LoadedDesign design(const std::string& name_or_path) const;
  // What a device file says about its accelerator: a name, or a whole design.
  LoadedDesign design_in(const JsonView& view) const;
  const std::vector<std::string>& design_names() const { return names_; }  // sorted
  const EnergyLibrary& library() const { return library_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> names_;
  EnergyLibrary library_;
};

}  // namespace foretoken
