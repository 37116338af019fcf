// Requests that are given a field each, drawn: a priority, a model, an adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "serving/requests/request.h"

namespace foretoken {

using FieldDraw = std::function<void(Request&, RandomStream&)>;

// The requests of `inner`, each after `draw` has set what it draws from the stream of this name. Called once for each,
// in order.
std::unique_ptr<RequestSource> with_drawn(std::unique_ptr<RequestSource> inner, uint64_t seed, const std::string& name,
                                          FieldDraw draw);

// The same, but all turns of a conversation draw the same.
std::unique_ptr<RequestSource> with_drawn_by_session(std::unique_ptr<RequestSource> inner, uint64_t seed,
                                                     const std::string& name, FieldDraw draw);

}  // namespace foretoken
