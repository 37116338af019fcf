// The little of PostgreSQL that a store needs, with its failures in our words and without passwords.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

using PostgresRow = std::vector<std::optional<std::string>>;  // columns as text; null = nothing

// Begins with postgresql:// or postgres://.
bool is_postgres_address(std::string_view location);

// A connection to a server, for one thread at a time. A connection that breaks (the server restarts, the network fails)
// is made anew and the statement is run again, for as long as `patience_s`: statements must be such that running one
// twice does no harm. The client library is loaded by the first connection, since loading it takes longer than most
// answers of the program.
class PostgresConnection {
 public:
  // InputError where the address is wrong, or no server answers there, or the server does not accept us.
  PostgresConnection(const std::string& address, double patience_s);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs one statement with its parameters $1, $2, ...
  std::vector<PostgresRow> run(const std::string& statement, const std::vector<std::string>& parameters = {});
  const std::string& name() const { return name_; }  // the address without password

 private:
  struct Open;
  void connect_again();
  std::string said() const;  // by the library or the server, without password
  std::string name_, password_;
  double patience_s_;
  std::unique_ptr<Open> open_;
};

// Bytes as a value of type bytea, and such values as an array of them.
std::string bytea(std::string_view bytes);
std::string bytea_array(std::span<const std::string> values);
// Of what encode(..., 'hex') returns.
std::string bytes_of(std::string_view hex);

}  // namespace foretoken
