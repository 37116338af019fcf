#include "app/cli/grammar/known_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/error.h"

namespace foretoken {

void check_names(const std::string& flag, std::span<const std::string> given, std::span<const std::string> known) {
  constexpr size_t most_listed = 12;
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto listed = known.first(std::min(most_listed, known.size()));
    throw InputError(
        {.source = flag,
         .value = printable(name),
         .expected = fmt::format("one of {}{}", fmt::join(listed, ", "), known.size() > most_listed ? ", ..." : ""),
         .suggestion = nearest_name(name, known).value_or("")});
  }
}

std::string flag_meant(const std::string& typed, std::span<const std::string> known) {
  const auto has = [&](const char* name) { return std::find(known.begin(), known.end(), name) != known.end(); };
  if (typed == "--hardware" && has("--device")) {
    return std::string(has("--devices") ? "--device with --devices" : "--device") +
           (has("--cluster") ? ", or --cluster" : "");
  }
  constexpr std::string_view names_of_devices[] = {"--device", "--devices", "--gpu", "--gpus", "--cluster", "--node"};
  const bool is_of_devices =
      std::find(std::begin(names_of_devices), std::end(names_of_devices), typed) != std::end(names_of_devices);
  if (is_of_devices && has("--hardware")) return "--hardware 8xH100";
  return nearest_name(typed, known).value_or("");
}

}  // namespace foretoken
