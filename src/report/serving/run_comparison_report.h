// A measured run beside its prediction, for people, for programs and as a page.
#pragma once

#include <string>

#include "base/json.h"
#include "validate/deployment/replay_run.h"

namespace foretoken {

std::string run_comparison_text(const RunComparison& comparison);
Json run_comparison_json(const RunComparison& comparison, bool with_requests);
std::string run_comparison_csv(const RunComparison& comparison);  // a row for each request
std::string run_comparison_html(const RunComparison& comparison, const std::string& command);

}  // namespace foretoken
