#include "app/cli/grammar/ranks.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr int64_t most_ranks = 1'000'000;

// Variables in which a launcher says which process this is, of how many.
struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
};
constexpr Launcher launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE"},
    // Not SLURM_NTASKS: a batch script has that too, and it is a single process.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

int64_t whole_number(const std::string& variable, const std::string& text, int64_t least, int64_t most) {
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    throw InputError({.source = variable,
                      .value = printable(text),
                      .expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most)});
  }
  return number;
}

std::optional<ProcessRank> launched_rank(const Environment& environment) {
  for (const Launcher& one : launchers) {
    const auto number = environment(one.rank), count = environment(one.ranks);
    if (!number || !count) continue;
    const int64_t ranks = whole_number(one.ranks, *count, 1, most_ranks);
    return ProcessRank{.number = whole_number(one.rank, *number, 0, ranks - 1), .count = ranks, .launcher = one.name};
  }
  return std::nullopt;
}

std::optional<ProcessRank> array_rank(const Environment& environment) {
  const auto task = environment("SLURM_ARRAY_TASK_ID"), count = environment("SLURM_ARRAY_TASK_COUNT");
  if (!task || !count) return std::nullopt;
  // Tasks may have any numbers (--array=3,5,9); the first one answers.
  const std::string lowest = environment("SLURM_ARRAY_TASK_MIN").value_or("0");
  constexpr int64_t most_task = int64_t{1} << 40;
  const int64_t first = whole_number("SLURM_ARRAY_TASK_MIN", lowest, 0, most_task);
  return ProcessRank{.number = whole_number("SLURM_ARRAY_TASK_ID", *task, first, most_task) - first,
                     .count = whole_number("SLURM_ARRAY_TASK_COUNT", *count, 1, most_ranks),
                     .launcher = array_launcher};
}

// A pod knows its number but not how many there are.
std::optional<ProcessRank> kubernetes_rank(const Environment& environment) {
  constexpr const char* variable = "JOB_COMPLETION_INDEX";
  const auto index = environment(variable);
  if (!index) return std::nullopt;
  const int64_t number = whole_number(variable, *index, 0, most_ranks - 1);
  return ProcessRank{.number = number, .count = number + 1, .launcher = kubernetes_launcher};
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

ProcessRank rank_from(const Environment& environment) {
  const std::optional<ProcessRank> array = array_rank(environment), launched = launched_rank(environment);
  if (!array && !launched) return kubernetes_rank(environment).value_or(ProcessRank{});
  if (!array) return *launched;
  if (!launched) return *array;
  return {.number = array->number * launched->count + launched->number,
          .count = array->count * launched->count,
          .launcher = launched->launcher + " in " + array->launcher};
}

}  // namespace foretoken
