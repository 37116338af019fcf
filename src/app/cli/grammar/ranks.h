// Which of several equal processes this one is: they work through one search together (plan/store/).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace foretoken {

inline constexpr const char* array_launcher = "a Slurm array";
inline constexpr const char* kubernetes_launcher = "a Kubernetes job";

struct ProcessRank {
  int64_t number = 0, count = 1;
  std::string launcher;  // who said so: "mpirun", "srun", array_launcher, kubernetes_launcher; empty = nobody

  bool answers() const { return number == 0; }  // the others say nothing
};

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

// As the launchers tell the processes they start: Open MPI, MPICH and its kin, srun, indexed Kubernetes jobs, and
// Slurm's job arrays, whose tasks may also each run such a launcher. No library of theirs is needed for that.
// InputError for numbers that make no sense.
ProcessRank rank_from(const Environment& environment);

}  // namespace foretoken
