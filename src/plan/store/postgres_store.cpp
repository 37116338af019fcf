#include "plan/store/postgres_store.h"

#include <random>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/store/process_name.h"

namespace foretoken {
namespace {

constexpr int64_t postgres_store_format = 1;
// Longer than a managed server needs to restart or to fail over.
constexpr double postgres_patience_s = 300;

// When a claim of so many seconds ends, by the server's clock: those of the workers may differ.
constexpr const char* server_seconds = "extract(epoch FROM clock_timestamp())::double precision";
std::string end_of_lease(double lease_s) {
  return lease_s == 0 ? "0" : fmt::format("{} + {}", server_seconds, lease_s);
}

int64_t count_of(const PostgresRow& row, size_t column) {
  return std::stoll(row.at(column).value_or("0"));
}

bool has_tables(PostgresConnection& server) {
  return server.run("SELECT to_regclass('foretoken_store')").at(0).at(0).has_value();
}

void check_postgres_format(PostgresConnection& server) {
  const int64_t format = count_of(server.run("SELECT max(format) FROM foretoken_store").at(0), 0);
  if (format == postgres_store_format) return;
  throw InputError(
      {.source = server.name(),
       .value = fmt::format("format {} of stores", format),
       .expected = fmt::format("format {}: its tables are of another version of foretoken", postgres_store_format)});
}

// All at once, and by one worker, though many may come first. A result is null until its work is finished; who claimed
// it, for which attempt, until when, and how often that happened. Keys may be longer than an index allows.
void create_postgres_tables(PostgresConnection& server) {
  server.run(fmt::format(
      "DO $$ BEGIN "
      "PERFORM pg_advisory_xact_lock(1718905710); "
      "CREATE TABLE IF NOT EXISTS foretoken_questions (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
      "digest BYTEA NOT NULL UNIQUE, name BYTEA NOT NULL); "
      "CREATE TABLE IF NOT EXISTS foretoken_results (question BIGINT NOT NULL, digest BYTEA NOT NULL, key BYTEA NOT "
      "NULL, result BYTEA, begun BIGINT NOT NULL, owner TEXT NOT NULL, attempt TEXT NOT NULL, until DOUBLE PRECISION "
      "NOT NULL, PRIMARY KEY (question, digest)); "
      "CREATE TABLE IF NOT EXISTS foretoken_store (format BIGINT NOT NULL); "
      "INSERT INTO foretoken_store SELECT {} WHERE NOT EXISTS (SELECT FROM foretoken_store); "
      "END $$",
      postgres_store_format));
}

// Work that nobody has begun is not counted.
constexpr const char* postgres_counts_columns =
    "SELECT count(result), count(*) FILTER (WHERE result IS NULL AND begun > 0), coalesce(sum(begun), 0)::bigint "
    "FROM foretoken_results";

StoreCounts counts_in_table(const PostgresRow& row) {
  return {.results = count_of(row, 0), .claimed = count_of(row, 1), .begun = count_of(row, 2)};
}

class PostgresStore final : public StoreBackend {
 public:
  PostgresStore(const std::string& address, const std::string& question)
      : server_(address, postgres_patience_s),
        own_mark_((uint64_t{std::random_device()()} << 32U) + std::random_device()()) {
    if (!has_tables(server_)) create_postgres_tables(server_);
    check_postgres_format(server_);
    server_.run(
        "INSERT INTO foretoken_questions (digest, name) VALUES (sha256($1::bytea), $1::bytea) ON CONFLICT DO NOTHING",
        {bytea(question)});
    question_ = server_.run("SELECT id FROM foretoken_questions WHERE digest = sha256($1::bytea)", {bytea(question)})
                    .at(0)
                    .at(0)
                    .value();
  }

  StoreClaim claim(std::span<const std::string> keys, const std::string& owner, double lease_s) override {
    const std::string asked = bytea_array(keys);
    // An answer that is lost with its connection is asked for again, and must then find what was claimed by it.
    const std::string attempt = fmt::format("{:016x} {}", own_mark_, ++attempts_);
    Look found = look(keys.size(), asked, owner, lease_s, attempt, {});
    if (!found.claim.mine && found.are_missing) {
      add(asked);
      found = look(keys.size(), asked, owner, lease_s, attempt, {});
    }
    if (!found.claim.mine && !found.dead_owners.empty()) {
      found = look(keys.size(), asked, owner, lease_s, attempt, found.dead_owners);
    }
    return std::move(found.claim);
  }

  void finish(const std::string& key, const std::string& result) override {
    server_.run(
        "UPDATE foretoken_results SET result = $3::bytea "
        "WHERE question = $1::bigint AND digest = sha256($2::bytea) AND result IS NULL",
        {question_, bytea(key), bytea(result)});
  }

  void renew(std::span<const std::string> keys, const std::string& owner, double lease_s) override {
    server_.run(fmt::format("UPDATE foretoken_results SET until = {} "
                            "WHERE question = $1::bigint AND owner = $3 AND result IS NULL "
                            "AND digest IN (SELECT sha256(key) FROM unnest($2::bytea[]) AS list(key))",
                            end_of_lease(lease_s)),
                {question_, bytea_array(keys), owner});
  }

  StoreCounts counts() override {
    return counts_in_table(
        server_.run(std::string(postgres_counts_columns) + " WHERE question = $1::bigint", {question_}).at(0));
  }

 private:
  struct Look {
    StoreClaim claim;
    bool are_missing = false;           // keys of which the table knows nothing
    std::set<std::string> dead_owners;  // of claims
  };

  // Rows that others are claiming at this moment are passed over, not waited for. Comparing with an array, not a join,
  // makes the server use its index even before it has counted the rows.
  Look look(size_t keys, const std::string& asked, const std::string& owner, double lease_s, const std::string& attempt,
            const std::set<std::string>& dead_owners) {
    const std::vector<PostgresRow> rows = server_.run(
        fmt::format(
            "WITH asked AS MATERIALIZED (SELECT array_agg(sha256(key) ORDER BY place) AS digests "
            "FROM unnest($2::bytea[]) WITH ORDINALITY AS list(key, place)), "
            "free AS (SELECT r.digest FROM foretoken_results r "
            "WHERE r.question = $1::bigint AND r.digest = ANY((SELECT digests FROM asked)::bytea[]) "
            "AND r.result IS NULL AND (r.until <= {0} OR r.attempt = $4 OR r.owner IN "
            "(SELECT convert_from(name, 'UTF8') FROM unnest($5::bytea[]) AS dead(name))) "
            "ORDER BY r.attempt = $4 DESC, array_position((SELECT digests FROM asked), r.digest) "
            "LIMIT 1 FOR UPDATE OF r SKIP LOCKED), "
            "mine AS (UPDATE foretoken_results r SET begun = r.begun + (r.attempt <> $4)::int, owner = $3, "
            "attempt = $4, until = {1} FROM free "
            "WHERE r.question = $1::bigint AND r.digest = free.digest RETURNING r.digest) "
            "SELECT array_position((SELECT digests FROM asked), r.digest) AS place, encode(r.result, 'hex'), r.owner, "
            "mine.digest IS NOT NULL FROM foretoken_results r LEFT JOIN mine ON mine.digest = r.digest "
            "WHERE r.question = $1::bigint AND r.digest = ANY((SELECT digests FROM asked)::bytea[]) ORDER BY place",
            server_seconds, end_of_lease(lease_s)),
        {question_, asked, owner, attempt,
         bytea_array(std::vector<std::string>(dead_owners.begin(), dead_owners.end()))});
    Look found{.claim = {}, .are_missing = rows.size() < keys, .dead_owners = {}};
    for (const PostgresRow& row : rows) {
      const auto place = static_cast<size_t>(count_of(row, 0) - 1);
      if (row.at(3) == "t") {
        found.claim.mine = place;
      } else if (row.at(1)) {
        found.claim.done.emplace_back(place, bytes_of(*row.at(1)));
      } else if (row.at(2) && process_is_gone(*row.at(2))) {
        found.dead_owners.insert(*row.at(2));
      }
    }
    return found;
  }

  // In one order for all workers, so that none waits for another in a circle.
  void add(const std::string& asked) {
    server_.run(
        "INSERT INTO foretoken_results (question, digest, key, begun, owner, attempt, until) "
        "SELECT $1::bigint, sha256(key), key, 0, '', '', 0 FROM unnest($2::bytea[]) AS list(key) "
        "ORDER BY 2 ON CONFLICT DO NOTHING",
        {question_, asked});
  }

  PostgresConnection server_;
  std::string question_;  // its number
  uint64_t own_mark_;     // of this store among all that ever use the database
  uint64_t attempts_ = 0;
};

}  // namespace

std::unique_ptr<StoreBackend> postgres_store(const std::string& address, const std::string& question) {
  return std::make_unique<PostgresStore>(address, question);
}

StoreCounts postgres_counts(const std::string& address) {
  PostgresConnection server(address, postgres_patience_s);
  if (!has_tables(server)) {
    throw InputError({.source = server.name(),
                      .value = "no tables of foretoken's",
                      .expected = "a database in which a search has kept results"});
  }
  check_postgres_format(server);
  return counts_in_table(server.run(postgres_counts_columns).at(0));
}

}  // namespace foretoken
