// Keeps other sites, which a browser may have open beside ours, from using the server.
#pragma once

#include <string>
#include <vector>

#include "app/http/message.h"

namespace foretoken {

// What is wrong with where a request comes from; empty when nothing is. A browser says in Host under which name it
// reached us: a name of somebody else that points at this machine (DNS rebinding) is neither an address nor localhost.
// In Origin and Sec-Fetch-Site it says which site asks.
std::string site_problem(const HttpRequest& request, const std::vector<std::string>& further_hosts = {});

}  // namespace foretoken
