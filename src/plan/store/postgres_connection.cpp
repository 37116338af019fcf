#include "plan/store/postgres_connection.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/replace.h"
#include "base/secrets.h"

#ifdef FORETOKEN_POSTGRESQL
#include <dlfcn.h>
#include <libpq-fe.h>
#endif

namespace foretoken {

bool is_postgres_address(std::string_view location) {
  return location.starts_with("postgresql://") || location.starts_with("postgres://");
}

std::string bytea(std::string_view bytes) {
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  constexpr const char* digits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(digits[byte >> 4U]);
    text.push_back(digits[byte & 15U]);
  }
  return text;
}

std::string bytea_array(std::span<const std::string> values) {
  std::string text = "{";
  for (const std::string& value : values) {
    text += text.size() == 1 ? "\"\\" : ",\"\\";  // a backslash is doubled inside quotation marks
    text += bytea(value);
    text += '"';
  }
  return text + "}";
}

std::string bytes_of(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(hex[i]) << 4U | digit(hex[i + 1])));
  }
  return bytes;
}

#ifdef FORETOKEN_POSTGRESQL
namespace {

constexpr const char* libpq_file = "libpq.so.5";

// Functions of the client library.
struct Libpq {
  decltype(&::PQconninfoParse) conninfo_parse = nullptr;
  decltype(&::PQconninfoFree) conninfo_free = nullptr;
  decltype(&::PQfreemem) freemem = nullptr;
  decltype(&::PQconnectdbParams) connect = nullptr;
  decltype(&::PQpingParams) ping = nullptr;
  decltype(&::PQfinish) finish = nullptr;
  decltype(&::PQstatus) status = nullptr;
  decltype(&::PQerrorMessage) error_message = nullptr;
  decltype(&::PQsetNoticeProcessor) set_notice_processor = nullptr;
  decltype(&::PQexecParams) exec = nullptr;
  decltype(&::PQresultStatus) result_status = nullptr;
  decltype(&::PQresultErrorField) result_error_field = nullptr;
  decltype(&::PQclear) clear = nullptr;
  decltype(&::PQntuples) rows = nullptr;
  decltype(&::PQnfields) columns = nullptr;
  decltype(&::PQgetisnull) is_null = nullptr;
  decltype(&::PQgetvalue) value = nullptr;
  decltype(&::PQgetlength) length = nullptr;
};

Libpq load_libpq() {
  void* library = dlopen(libpq_file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw InputError({.source = "store",
                      .value = std::string(libpq_file) + " cannot be loaded",
                      .expected = "the PostgreSQL client library (Debian package libpq5), or a file as the store"});
  }
  Libpq all;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    ensure(function != nullptr, "every function of libpq.so.5 that we use is in all its versions");
  };
  find("PQconninfoParse", all.conninfo_parse);
  find("PQconninfoFree", all.conninfo_free);
  find("PQfreemem", all.freemem);
  find("PQconnectdbParams", all.connect);
  find("PQpingParams", all.ping);
  find("PQfinish", all.finish);
  find("PQstatus", all.status);
  find("PQerrorMessage", all.error_message);
  find("PQsetNoticeProcessor", all.set_notice_processor);
  find("PQexecParams", all.exec);
  find("PQresultStatus", all.result_status);
  find("PQresultErrorField", all.result_error_field);
  find("PQclear", all.clear);
  find("PQntuples", all.rows);
  find("PQnfields", all.columns);
  find("PQgetisnull", all.is_null);
  find("PQgetvalue", all.value);
  find("PQgetlength", all.length);
  return all;
}

const Libpq& libpq() {
  static const Libpq library = load_libpq();
  return library;
}

struct EndConnection {
  void operator()(PGconn* connection) const { libpq().finish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const { libpq().clear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

// What an address says, as far as it says it. InputError without the address, which may hold a password.
std::map<std::string, std::string> address_parts(const std::string& address) {
  char* said = nullptr;
  PQconninfoOption* options = libpq().conninfo_parse(address.c_str(), &said);
  if (options == nullptr) {
    libpq().freemem(said);
    throw InputError({.source = without_passwords(address),
                      .value = "an address that cannot be read",
                      .expected = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE; write special characters of a "
                                  "password as %40 and the like, or leave it to PGPASSWORD or ~/.pgpass"});
  }
  std::map<std::string, std::string> parts;
  for (const PQconninfoOption* one = options; one->keyword != nullptr; ++one) {
    if (one->val != nullptr) parts[one->keyword] = one->val;
  }
  libpq().conninfo_free(options);
  return parts;
}

// Worth another attempt: the server goes down or comes up, or two transactions stood in each other's way.
bool passes_by_itself(std::string_view state) {
  return state.starts_with("08") || state.starts_with("57P") || state == "40001" || state == "40P01" ||
         state == "53300";
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr std::chrono::milliseconds reconnection_pause{200};

}  // namespace

struct PostgresConnection::Open {
  std::map<std::string, std::string> settings;
  std::unique_ptr<PGconn, EndConnection> connection;

  // For libpq: names, and values of the same order, each with a null at the end.
  std::pair<std::vector<const char*>, std::vector<const char*>> lists() const {
    std::pair<std::vector<const char*>, std::vector<const char*>> result;
    for (const auto& [name, value] : settings) {
      result.first.push_back(name.c_str());
      result.second.push_back(value.c_str());
    }
    result.first.push_back(nullptr);
    result.second.push_back(nullptr);
    return result;
  }

  void connect() {
    const auto [names, values] = lists();
    connection.reset(libpq().connect(names.data(), values.data(), 0));
    libpq().set_notice_processor(
        connection.get(), [](void*, const char*) {}, nullptr);
  }
  bool is_connected() const { return libpq().status(connection.get()) == CONNECTION_OK; }
  PGPing ping() const {
    const auto [names, values] = lists();
    return libpq().ping(names.data(), values.data(), 0);
  }
};

PostgresConnection::PostgresConnection(const std::string& address, double patience_s)
    : name_(without_passwords(address)), patience_s_(patience_s), open_(std::make_unique<Open>()) {
  // What breaks without a word is noticed within half a minute, unless the address says otherwise.
  open_->settings = {{"connect_timeout", "10"},     {"keepalives_idle", "15"},
                     {"keepalives_interval", "5"},  {"keepalives_count", "3"},
                     {"tcp_user_timeout", "30000"}, {"fallback_application_name", "foretoken"}};
  for (const auto& [name, value] : address_parts(address)) open_->settings[name] = value;
  const auto password = open_->settings.find("password");
  if (password != open_->settings.end()) password_ = password->second;
  const double end = monotonic_seconds() + patience_s_;
  open_->connect();
  // A server that is starting is waited for; one that is not there is likely a mistake in the address.
  while (!open_->is_connected() && open_->ping() == PQPING_REJECT && monotonic_seconds() < end) {
    std::this_thread::sleep_for(reconnection_pause);
    open_->connect();
  }
  if (open_->is_connected()) return;
  throw InputError(
      {.source = name_, .value = said(), .expected = "a PostgreSQL database that this machine can reach and write"});
}

PostgresConnection::~PostgresConnection() = default;

std::string PostgresConnection::said() const {
  std::string text = libpq().error_message(open_->connection.get());
  replace_all(text, password_, "***");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text, 400);
}

std::vector<PostgresRow> PostgresConnection::run(const std::string& statement,
                                                 const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  values.reserve(parameters.size());
  for (const std::string& value : parameters) values.push_back(value.c_str());
  const double end = monotonic_seconds() + patience_s_;
  while (true) {
    const Result result(libpq().exec(open_->connection.get(), statement.c_str(), static_cast<int>(values.size()),
                                     nullptr, values.data(), nullptr, nullptr, 0));
    const ExecStatusType status = libpq().result_status(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      std::vector<PostgresRow> rows(static_cast<size_t>(libpq().rows(result.get())));
      for (size_t i = 0; i < rows.size(); ++i) {
        const int row = static_cast<int>(i);
        for (int column = 0; column < libpq().columns(result.get()); ++column) {
          if (libpq().is_null(result.get(), row, column) != 0) {
            rows[i].emplace_back();
            continue;
          }
          rows[i].emplace_back(std::string(libpq().value(result.get(), row, column),
                                           static_cast<size_t>(libpq().length(result.get(), row, column))));
        }
      }
      return rows;
    }
    const char* code = libpq().result_error_field(result.get(), PG_DIAG_SQLSTATE);
    const std::string state = code == nullptr ? "" : code;
    // What the server did not say is said by the client library, of a connection that broke.
    const bool is_lost = state.empty() || !open_->is_connected();
    if (state == "42501" || state == "3F000") {  // no permission; no such schema
      throw InputError(
          {.source = name_, .value = said(), .expected = "a schema in which this user may create and write tables"});
    }
    if (!is_lost && !passes_by_itself(state)) throw std::runtime_error(fmt::format("{}: {}", name_, said()));
    if (monotonic_seconds() > end) {
      throw std::runtime_error(fmt::format("{}: no answer for {:.0f} s: {}", name_, patience_s_, said()));
    }
    if (is_lost) {
      connect_again();
    } else {
      std::this_thread::sleep_for(reconnection_pause);
    }
  }
}

void PostgresConnection::connect_again() {
  open_->connect();
  if (!open_->is_connected()) std::this_thread::sleep_for(reconnection_pause);
}

#else

struct PostgresConnection::Open {};

PostgresConnection::PostgresConnection(const std::string& address, double patience_s)
    : name_(without_passwords(address)), patience_s_(patience_s) {
  throw InputError({.source = name_,
                    .value = "a program that was built without PostgreSQL",
                    .expected = "a file as the store, or a build with libpq (Debian package libpq-dev)"});
}
PostgresConnection::~PostgresConnection() = default;
std::vector<PostgresRow> PostgresConnection::run(const std::string&, const std::vector<std::string>&) {
  return {};
}
#endif

}  // namespace foretoken
