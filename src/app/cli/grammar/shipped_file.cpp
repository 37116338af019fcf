#include "app/cli/grammar/shipped_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace foretoken {

std::filesystem::path shipped_file(const std::string& flag, const std::filesystem::path& folder,
                                   const std::string& name, const std::string& what, const std::string& ending) {
  if (name.find('/') != std::string::npos || name.ends_with(ending)) return name;
  const std::vector<std::string> names = file_stems(folder, ending);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError({.source = flag,
                      .value = printable(name),
                      .expected = fmt::format("{}, or one of {}", what, fmt::join(names, ", ")),
                      .suggestion = nearest_name(name, names).value_or("")});
  }
  return folder / (name + ending);
}

}  // namespace foretoken
