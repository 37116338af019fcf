// What the page knows from the start: hardware, models, software, scenarios and published accuracy, each with sources.
#pragma once

#include "base/json.h"
#include "library/library.h"

namespace foretoken {

Json page_facts(const Library& library);

}  // namespace foretoken
