#include "training/schedule/kinds/list.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

// Add your line here; the name is what users type.
std::span<const PipelineKind> pipeline_kinds() {
  static const PipelineKind kinds[] = {gpipe_schedule(),          one_forward_one_backward_schedule(),
                                       interleaved_schedule(),    zero_bubble_h1_schedule(),
                                       zero_bubble_h2_schedule(), zero_bubble_v_schedule(),
                                       dualpipe_schedule()};
  return kinds;
}

std::vector<std::string> pipeline_schedule_names() {
  std::vector<std::string> names;
  for (const PipelineKind& kind : pipeline_kinds()) names.emplace_back(kind.name);
  return names;
}

const PipelineKind& pipeline_kind(std::string_view name) {
  for (const PipelineKind& kind : pipeline_kinds()) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = pipeline_schedule_names();
  throw InputError({.source = "pipeline schedule",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
