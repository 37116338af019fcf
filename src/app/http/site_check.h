// Keeps other sites, which a browser may have open beside ours, from using a server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/http/message.h"

namespace foretoken {

// What is wrong with where a request comes from; empty when nothing is. A browser says in Host under which name it
// reached us: a name of somebody else that points at this machine (DNS rebinding) is neither an address nor localhost.
// In Origin and Sec-Fetch-Site it says which site asks.

// Of a server that only its own page may use, under an address, localhost or one of `further_hosts`.
std::string own_site_problem(const HttpRequest& request, const std::vector<std::string>& further_hosts = {});

// Of a server that takes part in other sites. In lower case; * = all. Hosts without their port: "api.local". Origins as
// browsers name them: "http://api.local".
struct AllowedSites {
  std::vector<std::string> hosts = {"*"}, origins = {"*"};
};
std::string listed_site_problem(const HttpRequest& request, const AllowedSites& allowed);

}  // namespace foretoken
