#include "app/cli/output/page_trust.h"

namespace foretoken {

Trust page_trust(const Library& library, std::vector<std::string_view> layers, std::span<const Device> devices) {
  Trust trust{.layers = std::move(layers),
              .names = {},
              .published = read_published_accuracy(library.directory() / "accuracy" / "published.json"),
              .time_of = {}};
  for (const Device& device : devices) {
    for (std::string& name : measured_names(device, library.hardware().node_with(device))) {
      trust.names.push_back(std::move(name));
    }
  }
  return trust;
}

}  // namespace foretoken
