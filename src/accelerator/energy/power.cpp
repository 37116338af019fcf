#include "accelerator/energy/power.h"

namespace foretoken {
namespace {

constexpr double joules_per_picojoule = 1e-12;

}  // namespace

double average_watts(const Evaluation& evaluation, const Architecture& architecture) {
  const double seconds = evaluation.cycles / architecture.clock_hz;
  return evaluation.energy_pj * joules_per_picojoule / seconds;
}

}  // namespace foretoken
