#include "accelerator/formats/designs.h"

#include "base/error.h"
#include "base/file.h"
#include "hardware/catalogue.h"

namespace foretoken {

AcceleratorCatalogue::AcceleratorCatalogue(const std::filesystem::path& folder)
    : folder_(folder / "designs"),
      names_(file_stems(folder_)),
      library_(EnergyLibrary::read_file(folder / "energy.json")) {
  if (names_.empty()) {
    throw InputError({.source = folder.string(), .expected = "a folder of accelerators, with designs/ in it"});
  }
}

LoadedDesign AcceleratorCatalogue::design(const std::string& name_or_path) const {
  std::filesystem::path path = name_or_path;
  if (!HardwareCatalogue::is_path(name_or_path)) {
    const std::string* found = nullptr;
    for (const std::string& name : names_) {
      if (comparable_name(name) == comparable_name(name_or_path)) found = &name;
    }
    if (found == nullptr) {
      throw InputError({.source = "accelerator",
                        .value = printable(name_or_path),
                        .expected = "the name of an accelerator or a path to its .json file",
                        .suggestion = nearest_name(name_or_path, names_).value_or("")});
    }
    path = folder_ / (*found + ".json");
  }
  const Json document = read_json_file(path);
  return design_in(JsonView(document, path.string()));
}

LoadedDesign AcceleratorCatalogue::design_in(const JsonView& view) const {
  if (view.is(Json::Kind::string)) return design(view.string());
  LoadedDesign loaded{.design = read_architecture_json(view)};
  AcceleratorDesign& own = loaded.design;
  loaded.from_library = fill_costs(own.architecture, own.energies_given, own.areas_given, library_);
  return loaded;
}

}  // namespace foretoken
