// The files that a serving run leaves behind; vLLM's names where it has them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/grammar/options.h"
#include "base/json.h"
#include "report/serving/serving_report.h"
#include "serving/engine/engine_builder.h"
#include "serving/serving_run.h"

namespace foretoken {

struct ResultFlags {
  bool save_result = false, save_detailed = false, append_result = false;
  bool details_in_json = false;
  std::string result_dir = ".", result_filename = "foretoken_serve.json", label;
  std::vector<std::string> metadata;
  std::string out_requests, out_steps, out_series, out_trace;
  bool trace_in_json = false;
  std::vector<std::string> kernels_at;  // seconds, for the trace

  void declare(Options& options);
  // KEY=VALUE of --metadata.
  std::vector<std::pair<std::string, std::string>> metadata_pairs() const;
};

// Writes as the run goes on what can be, the rest at its end.
class ResultFiles {
 public:
  // Opens all files, so that a wrong name is known before the run; InputError names the flag.
  explicit ResultFiles(const ResultFlags& flags);
  ~ResultFiles();

  std::vector<RunObserver*> observers();
  // Adds the kernels of the steps that --trace-kernels-at chose. Before finish(). InputError for a moment without a
  // step.
  void add_kernels(const std::vector<ReplicaGroup>& groups);
  // Returns what a person should know about the files: empty when they hold everything.
  std::string finish(const ServingReport& report);
  // Arrays with a value for each request, where --details-in-json asks for them; the trace of --trace-in-json.
  void add_details(Json& answer) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace foretoken
