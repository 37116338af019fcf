// Results in a PostgreSQL database: for processes on any number of machines.
#pragma once

#include <memory>
#include <string>

#include "plan/store/postgres_connection.h"
#include "plan/store/store_backend.h"

namespace foretoken {

// The tables (foretoken_...) lie in the schema that comes first in the user's search_path; created if there are none.
std::unique_ptr<StoreBackend> postgres_store(const std::string& address, const std::string& question);
StoreCounts postgres_counts(const std::string& address);  // of all questions in it

}  // namespace foretoken
