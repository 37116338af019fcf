// A profiled step for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/profile/summary.h"

namespace foretoken {

std::string profile_text(const ProfileSummary& summary, const std::string& source);
Json profile_json(const ProfileSummary& summary, const std::string& source);

}  // namespace foretoken
