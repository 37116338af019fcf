#include "accelerator/energy/power.h"

namespace foretoken {
namespace {

constexpr double joules_per_picojoule = 1e-12;

}  // namespace

double leakage_watts(const Architecture& architecture) {
  double pj_per_cycle = 0;
  for (const AcceleratorLevel& level : architecture.levels) {
    pj_per_cycle += level.energy.leak_pj_per_cycle * static_cast<double>(instances(level));
  }
  return pj_per_cycle * joules_per_picojoule * architecture.clock_hz;
}

double average_watts(const Evaluation& evaluation, const Architecture& architecture) {
  const double seconds = evaluation.cycles / architecture.clock_hz;
  return evaluation.energy_pj * joules_per_picojoule / seconds;
}

}  // namespace foretoken
