#include "app/cli/flags/store_flags.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

void StoreFlags::declare(Options& options) {
  options.text("--store", store,
               "Store every result in this SQLite file, so that an interrupted search resumes and processes with the "
               "same file share the work; or in PostgreSQL, for workers on several machines: "
               "postgresql://USER@HOST/DATABASE (password: PGPASSWORD or ~/.pgpass)");
  options.integer("--ranks", ranks, {.least = 0, .most = 1'000'000},
                  "Number of processes that share the work (only rank 0 prints the answer); 0 = taken from mpirun, "
                  "srun, a Slurm array or an indexed Kubernetes job");
  options.integer("--rank", rank, {.least = 0, .most = 1'000'000}, "Rank of this process, counting from 0");
}

ProcessRank StoreFlags::own_rank(const Environment& environment) const {
  if (rank > 0 && rank >= ranks) {
    throw InputError(
        {.source = "--rank",
         .value = fmt::format("{}", rank),
         .expected = ranks == 0 ? "--ranks together with it" : fmt::format("a rank below --ranks {}", ranks)});
  }
  const ProcessRank own =
      ranks > 0 ? ProcessRank{.number = rank, .count = ranks, .launcher = "--ranks"} : rank_from(environment);
  if (!store.empty()) return own;
  // Tasks of an array may well be questions of their own.
  if (own.count == 1 || own.launcher == array_launcher || own.launcher == kubernetes_launcher) return {};
  throw InputError(
      {.source = "--store",
       .value = "",
       .expected = fmt::format("a file or a PostgreSQL database that all {} processes of {} can reach (with "
                               "--ranks 1, each process answers on its own)",
                               own.count, own.launcher)});
}

}  // namespace foretoken
