// One request of a serving run, from its arrival to its last token.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/serving/serving_breakdown.h"
#include "serving/results/request_life.h"

namespace foretoken {

// `steps`: those it took part in, by operator; null where step times have none.
std::string request_life_text(const RequestLife& life, const OperatorAccount* steps);
Json request_life_json(const RequestLife& life, const OperatorAccount* steps);

}  // namespace foretoken
