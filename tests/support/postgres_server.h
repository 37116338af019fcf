// A PostgreSQL server for tests: begun by the test in a folder of its own, as an unprivileged user.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace foretoken {

// To be used by one thread, since the server ends with the thread that started it.
class PostgresServer {
 public:
  // Why none can be started on this machine; empty where one can.
  static std::string missing();
  // The server of this test program, started when first asked for.
  static PostgresServer& of_this_program();

  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  static constexpr const char* password = "s3cret-Of-Tests";
  // For tables of `schema`, which must exist unless it is public.
  std::string address(const std::string& schema = "public") const { return address_with(password, schema); }
  std::string address_with(const std::string& secret, const std::string& schema = "public") const;

  void stop();  // at once, as if the machine had failed: whoever is connected loses its connection
  void start();

 private:
  std::filesystem::path folder_;
  pid_t pid_ = 0;
};

}  // namespace foretoken
