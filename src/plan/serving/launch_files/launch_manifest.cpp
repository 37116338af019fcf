#include "plan/serving/launch_files/launch_manifest.h"

#include <algorithm>

#include "base/error.h"
#include "plan/serving/launch_files/launch_file.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

using WriteManifest = std::string (*)(const launch_file::Question&);
struct ManifestKind {
  std::string_view name;
  WriteManifest write;
};
// A new kind of file is a source file in launch_files/ and a line here.
constexpr ManifestKind manifest_kinds[] = {
    {"kubernetes", launch_file::kubernetes}, {"compose", launch_file::compose}, {"dynamo", launch_file::dynamo},
    {"llm-d", launch_file::llm_d},           {"kserve", launch_file::kserve},
};

}  // namespace

std::vector<std::string> manifest_names() {
  std::vector<std::string> names;
  for (const ManifestKind& kind : manifest_kinds) names.emplace_back(kind.name);
  return names;
}

std::string launch_manifest(std::string_view name, const ServingQuestion& question, const ServingLayout& layout,
                            int64_t max_model_len) {
  const auto* kind = std::find_if(std::begin(manifest_kinds), std::end(manifest_kinds),
                                  [&](const ManifestKind& one) { return one.name == name; });
  ensure(kind != std::end(manifest_kinds), "a name of manifest_names()");
  return kind->write({.question = question,
                      .layout = layout,
                      .pools = pool_launches(question, layout, max_model_len),
                      .style = engine_kind(layout.pool.engine.engine).launch});
}

}  // namespace foretoken
