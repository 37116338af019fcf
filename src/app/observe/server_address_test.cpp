#include "app/observe/server_address.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::server_address_test {

TEST(ServerUrl, hosts_ports_and_prefixes_are_read) {
  const ServerAddress server = parse_server_url("--url", "http://[::1]:8000/prefix/v1/");
  EXPECT_EQ(server.host, "::1");
  EXPECT_EQ(server.port, 8000);
  EXPECT_EQ(server.path, "/prefix");
  EXPECT_EQ(parse_server_url("--url", "http://gateway").port, 80);
  EXPECT_EQ(parse_server_url("--url", "localhost:8001").host, "localhost");
  EXPECT_EQ(parse_server_url("--url", "localhost:8001").port, 8001);
  EXPECT_EQ(parse_server_url("--url", "https://gateway").port, 443);
  EXPECT_TRUE(parse_server_url("--url", "https://gateway").encrypted);
  for (const char* url : {"ftp://host", "", "http://host:0", "http://", "http://a@b:80", "http://h/a?b"}) {
    EXPECT_THROW(parse_server_url("--url", url), InputError) << url;
  }
  try {
    parse_server_url("--url", "localhost:80000");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().value, "localhost:80000") << "as it was typed";
  }
  EXPECT_EQ(parse_server_url("--url", "localhost:8001/v1").written, "localhost:8001/v1");
}

TEST(ServerUrl, a_host_that_nobody_knows_is_told_by_the_flag_that_named_it) {
  const std::string host(300, 'a');  // longer than a name may be: no name server is asked
  try {
    resolve(parse_server_url("--server", host + ":8000"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "--server");
  }
  EXPECT_FALSE(resolve(parse_server_url("--url", "127.0.0.1:8000")).empty());
}

}  // namespace foretoken::server_address_test
