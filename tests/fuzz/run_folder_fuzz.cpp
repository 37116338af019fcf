// Any bytes are a part of a measured run that can be written and read back, or an InputError. The first byte says which
// part: '{' run.json, 't' metrics.csv, anything else requests.csv.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "serving/runs/run_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string text(as_text(data, size));
  read_or_refuse([&] {
    if (text.starts_with('{')) {
      const MeasuredRun run = parse_run_json(text, "run.json");
      const std::string written = run_json(run).dump();
      promise(run_json(parse_run_json(written, "run.json")).dump() == written, "what is written reads back the same");
      return;
    }
    MeasuredRun run, again;
    CsvReader table = CsvReader::from_text(text, "table.csv");
    if (text.starts_with('t')) {
      read_run_metrics(table, run);
      const std::string written = run_metrics_csv(run);
      CsvReader back = CsvReader::from_text(written, "metrics.csv");
      read_run_metrics(back, again);
      promise(run_metrics_csv(again) == written, "what is written reads back the same");
      return;
    }
    read_run_requests(table, run);
    for (const MeasuredRequest& request : run.requests) {
      promise(request.input_tokens >= 0 && request.output_tokens >= 0, "tokens are counts");
      promise(!request.has_times() || *request.e2e_s >= *request.ttft_s, "the first token comes before the last");
    }
    const std::string written = run_requests_csv(run);
    CsvReader back = CsvReader::from_text(written, "requests.csv");
    read_run_requests(back, again);
    promise(run_requests_csv(again) == written, "what is written reads back the same");
    summarize(run);
  });
  return 0;
}
