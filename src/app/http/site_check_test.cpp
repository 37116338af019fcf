#include "app/http/site_check.h"

#include <gtest/gtest.h>

namespace foretoken::site_check_test {

std::string problem_of(HttpHeaders headers, std::string method = "POST") {
  return own_site_problem({.method = std::move(method), .path = "/api/run", .headers = std::move(headers)},
                          {"lab.example"});
}

TEST(SiteCheck, addresses_localhost_and_given_names_are_served) {
  for (const char* host :
       {"127.0.0.1:8080", "localhost", "LocalHost:8080", "[::1]:8080", "192.168.1.7", "lab.example:1"}) {
    EXPECT_EQ(problem_of({{"host", host}}), "") << host;
  }
}

TEST(SiteCheck, names_of_others_that_point_here_are_not) {
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8080", "[evil]"}) {
    EXPECT_NE(problem_of({{"host", host}}), "") << host;
  }
}

TEST(SiteCheck, pages_of_other_sites_may_not_ask) {
  EXPECT_EQ(problem_of({{"host", "127.0.0.1:8080"}, {"origin", "http://127.0.0.1:8080"}}), "");
  for (const char* origin : {"http://evil.example", "http://127.0.0.1:9090", "https://127.0.0.1:8080", "null"}) {
    EXPECT_NE(problem_of({{"host", "127.0.0.1:8080"}, {"origin", origin}}), "") << origin;
  }
  EXPECT_NE(problem_of({{"host", "127.0.0.1:8080"}, {"sec-fetch-site", "cross-site"}}), "");
}

TEST(SiteCheck, a_link_elsewhere_may_lead_to_the_page) {
  const HttpHeaders headers = {
      {"host", "127.0.0.1:8080"}, {"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}};
  EXPECT_EQ(problem_of(headers, "GET"), "");
  EXPECT_NE(problem_of(headers, "POST"), "");
}

std::string listed_problem_of(HttpHeaders headers) {
  return listed_site_problem({.method = "POST", .path = "/v1/completions", .headers = std::move(headers)},
                             {.hosts = {"api.local"}, .origins = {"http://app.example"}});
}

TEST(SiteCheck, listed_hosts_and_origins_alone_are_served) {
  EXPECT_EQ(listed_problem_of({{"host", "API.local:8000"}}), "");
  EXPECT_EQ(listed_problem_of({{"host", "api.local"}, {"origin", "http://App.example"}}), "");
  EXPECT_EQ(listed_problem_of({{"host", "localhost"}}),
            "host localhost is not allowed; expected a name given with --allowed-hosts");
  EXPECT_EQ(listed_problem_of({{"host", "api.local"}, {"origin", "http://other.example"}}),
            "a page of http://other.example may not use this server");
  EXPECT_EQ(listed_problem_of({{"host", "api.local"}, {"origin", "{origin}"}}),
            "a page of {origin} may not use this server");
}

TEST(SiteCheck, without_lists_everybody_is_served) {
  const HttpRequest request{.method = "POST", .headers = {{"host", "any.example"}, {"origin", "http://any.example"}}};
  EXPECT_EQ(listed_site_problem(request, {}), "");
}

}  // namespace foretoken::site_check_test
