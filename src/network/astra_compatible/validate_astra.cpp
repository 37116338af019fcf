#include "network/astra_compatible/validate_astra.h"

#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "network/astra_compatible/conformance.h"

namespace foretoken {

bool is_astra_table(const std::filesystem::path& data) {
  std::error_code error;
  return std::filesystem::is_regular_file(data, error) && is_astra_table(CsvReader(data));
}

Validation validate_astra(const std::filesystem::path& data, const ScoredAstraSink& sink) {
  CsvReader csv(data);
  const AstraRowReader reader(csv);
  const size_t topology = csv.column("topology"), collective = csv.column("collective");
  constexpr double long_ns = 20'000;
  ValidationTally tally(long_ns);
  Validation validation;
  while (csv.next()) {
    const auto start = std::chrono::steady_clock::now();
    const AstraTime time = astra_time(reader.read(csv));
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!time.nanoseconds) {
      validation.skipped.push_back({csv.source(), csv.row(), "no closed form: " + time.no_closed_form});
      continue;
    }
    const ScoredAstraRun scored{
        .row = csv.row(), .measured_ns = reader.measured_nanoseconds(csv), .predicted_ns = *time.nanoseconds};
    const auto predicted = static_cast<double>(scored.predicted_ns);
    tally.add(fmt::format("{}/{}", csv.cell(topology), csv.cell(collective)),
              {.measured = static_cast<double>(scored.measured_ns),
               .predicted = predicted,
               .low = predicted,
               .high = predicted},
              spent);
    if (sink) sink(scored);
  }
  tally.write(validation);
  return validation;
}

}  // namespace foretoken
