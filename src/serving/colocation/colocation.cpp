#include "serving/colocation/colocation.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::string_view names[] = {"time_slicing", "mps", "mig", "swap"};  // in the order of Sharing

}  // namespace

std::vector<std::string> sharing_names() {
  return {std::begin(names), std::end(names)};
}

std::string_view sharing_name(Sharing sharing) {
  return names[static_cast<size_t>(sharing)];
}

Sharing sharing_from_name(std::string_view name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  ensure(found != std::end(names), "a way of sharing is one of the list");
  return static_cast<Sharing>(found - std::begin(names));
}

}  // namespace foretoken
