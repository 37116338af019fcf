#include "base/replace.h"

namespace foretoken {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t place = text.find(from); place != std::string::npos; place = text.find(from, place + to.size())) {
    text.replace(place, from.size(), to);
  }
}

}  // namespace foretoken
