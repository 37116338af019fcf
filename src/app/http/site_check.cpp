#include "app/http/site_check.h"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/field_braces.h"
#include "base/text.h"

namespace foretoken {
namespace {

bool is_address(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

bool is_listed(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_allowed(const std::vector<std::string>& list, const std::string& name) {
  return is_listed(list, "*") || is_listed(list, name);
}

// Empty where both are served.
std::string problem_of(const HttpRequest& request, bool serves_host, std::string_view hosts, bool serves_origin) {
  const auto header = [&](const char* name) { return without_literal_marks(printable(request.header(name))); };
  if (!serves_host) return fmt::format("host {} is not allowed; expected {}", header("host"), hosts);
  if (serves_origin) return "";
  return fmt::format("a page of {} may not use this server", header("origin"));
}

}  // namespace

std::string listed_site_problem(const HttpRequest& request, const AllowedSites& allowed) {
  const std::string origin = lower_case(request.header("origin"));
  return problem_of(request, is_allowed(allowed.hosts, request.host_name()), "a name given with --allowed-hosts",
                    origin.empty() || is_allowed(allowed.origins, origin));
}

std::string own_site_problem(const HttpRequest& request, const std::vector<std::string>& further_hosts) {
  const std::string name = request.host_name();
  const std::string origin = lower_case(request.header("origin"));
  const std::string problem =
      problem_of(request, name == "localhost" || is_address(name) || is_listed(further_hosts, name),
                 "an address, localhost, or a name given with --allow-host",
                 origin.empty() || origin == "http://" + lower_case(request.header("host")));
  if (!problem.empty()) return problem;
  const std::string_view site = request.header("sec-fetch-site");
  const bool is_navigation = request.method == "GET" && request.header("sec-fetch-mode") == "navigate";
  if (!site.empty() && site != "same-origin" && site != "none" && !is_navigation) {
    return "another site may not use this server";
  }
  return "";
}

}  // namespace foretoken
