#include "kernel/fewshot/spaces/list.h"

#include "base/error.h"

namespace foretoken {

std::span<const ArchitectureSpace> architecture_spaces() {
  // Add your line here.
  static const ArchitectureSpace spaces[] = {nasbench201_space(), fbnet_space(), ofa_space(), hat_space()};
  return spaces;
}

std::vector<double> drawn_features(const ArchitectureSpace& space, std::span<const std::string> cells) {
  return space.features(std::vector<std::string_view>(cells.begin(), cells.end()),
                        [](size_t, std::string) { throw InternalError("a drawn architecture is one of its space"); });
}

const ArchitectureSpace& architecture_space(std::string_view name) {
  std::vector<std::string> names;
  for (const ArchitectureSpace& space : architecture_spaces()) {
    if (space.name == name) return space;
    names.emplace_back(space.name);
  }
  throw InputError({.source = "--space",
                    .value = std::string(name),
                    .expected = "a space of architectures",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
