#include "app/page/site_check.h"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

bool is_address(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

}  // namespace

std::string site_problem(const HttpRequest& request, const std::vector<std::string>& further_hosts) {
  const std::string_view host = request.header("host");
  const std::string name = request.host_name();
  const bool is_ours = name == "localhost" || is_address(name) ||
                       std::find(further_hosts.begin(), further_hosts.end(), name) != further_hosts.end();
  if (!is_ours) {
    return fmt::format("host {} is not served: an address, localhost, or a name given with --allow-host",
                       printable(host));
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && lower_case(origin) != "http://" + lower_case(host)) {
    return fmt::format("a page of {} may not use this server", printable(origin));
  }
  const std::string_view site = request.header("sec-fetch-site");
  const bool is_navigation = request.method == "GET" && request.header("sec-fetch-mode") == "navigate";
  if (!site.empty() && site != "same-origin" && site != "none" && !is_navigation) {
    return "another site may not use this server";
  }
  return "";
}

}  // namespace foretoken
