// Any text of an engine's /metrics is numbers that a run can keep, nothing, or an InputError.
#include "base/csv.h"
#include "fuzz.h"
#include "serving/runs/prometheus_text.h"
#include "serving/runs/run_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const auto sample = parse_prometheus_text(as_text(data, size));
    if (!sample) return;
    MeasuredRun run, again;
    run.samples.push_back(*sample);
    const std::string written = run_metrics_csv(run);
    CsvReader back = CsvReader::from_text(written, "metrics.csv");
    read_run_metrics(back, again);
    promise(run_metrics_csv(again) == written, "what is written reads back the same");
  });
  return 0;
}
