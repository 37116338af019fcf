// One measured operating point of a serving engine, as tables of such points describe it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "compose/serving_engine.h"
#include "hardware/catalogue.h"
#include "serving/load/load_spec.h"
#include "serving/results/metrics.h"
#include "validate/serving/public_facts.h"

namespace foretoken {

struct MeasuredValue {
  std::string_view metric;  // ttft_ms, tpot_ms, out_tok_s, req_s, e2e_ms
  double value = 0;
  std::string_view statistic;                            // "mean", "median", "mean ITL"; empty for rates
  double (*predicted)(const ServingMetrics&) = nullptr;  // the same statistic of a simulated run
  double at_most = 0;                                    // as rules of its benchmark ask for; 0 = no rule
};

// Equal engines.
struct CasePool {
  int64_t replicas = 1;  // data-parallel ranks count as such, unless they share experts
  ParallelPlan plan;
};

// A file of requests that the row replays, whole or every so many of them.
struct CaseTrace {
  std::string name, tokenizer;
  int64_t shards = 1;
  int64_t input_tokens = 0;  // of the shard, which tells them apart; 0 = not said
};

// What is known of a row, and what the engine's defaults fill in.
struct ServingCase {
  size_t row = 0;
  std::string id, tier, gpu, model, engine;
  std::string weight_dtype;  // fp8 and fp4: as the model's publishers ship it; else a scheme
  std::string expert_dtype;  // scheme that the engine was told to run MXFP4 experts in; empty = its usual one
  std::string kv_dtype;      // empty = the model's
  CasePool pool;
  int64_t devices = 0;  // where the layout is not given: the fewest devices for one engine that leave room for a cache
  std::optional<CasePool> prefill;  // separate workers for prompts; those of `pool` decode
  // Requests that each of both takes at once, and tokens in a step; 0 = not known.
  int64_t decode_seats = 0, prefill_seats = 0, prefill_tokens = 0;
  int64_t decode_graphs = 0;  // most sequences of a captured step of decode workers; 0 = the engine's own
  double prefill_memory = 0, decode_memory = 0;  // as EngineFlags::memory_fraction
  EngineFlags flags;
  std::string scheduler, stack;
  bool prefix_caching = true;
  bool async_scheduling = true;
  int64_t receive_interval = 1, stream_interval = 1;
  int64_t batch_wait_timeout_iters = 0;  // TensorRT-LLM, as in SchedulerOptions
  double batch_wait_max_tokens_ratio = 0;
  std::string draft_method;  // of speculative decoding; empty = none
  int64_t drafts = 0;
  double acceptance_length = 0;       // tokens of a verification, over the run; 0 = not said
  bool acceptance_is_forced = false;  // to that length, whatever the texts are
  LoadSpec load;                      // but for the requests of a trace
  bool lengths_are_assumed = false;   // all alike; the row does not say so
  bool sends_data_set = false;        // of MLPerf: again and again, for ten minutes at least
  std::optional<CaseTrace> trace;     // whose requests are replayed
  std::vector<MeasuredValue> measured;
};

// Columns as in data/serving/cases.csv of the measurements: source, tier, gpu, model, engine, engine_version,
// weight_dtype, kv_dtype, tp, pp, dp, ep, mode, disagg_layout, isl, osl, length_spec, arrival, concurrency, rate_rps,
// num_requests, engine_flags and the measured values with their statistic. And those of SGLang's cookbook: spec_method,
// spec_steps, spec_draft_tokens and accept_length.
class ServingCaseReader {
 public:
  // `hardware`: whose generations tell which of the published recipes are meant.
  ServingCaseReader(const std::filesystem::path& file, const HardwareCatalogue& hardware, PublicFacts facts);
  // A table that is not in a file.
  ServingCaseReader(CsvReader csv, const HardwareCatalogue& hardware, PublicFacts facts);

  bool next() { return csv_.next(); }
  const CsvReader& csv() const { return csv_; }
  std::string_view text(std::string_view column) const;

  // The current row; nothing and a reason where it cannot be expressed. InputError for a broken one.
  std::optional<ServingCase> read(std::string& why) const;

 private:
  int64_t count(std::string_view column, int64_t fallback) const;
  double number(std::string_view column) const;  // 0 = not given
  std::string options_text() const;  // the engine's options: as the row gives them, else as a public recipe does
  std::string generation() const;    // of the row's device; empty = not known
  void read_worker_limits(ServingCase& result) const;
  bool read_layout(ServingCase& result, std::string& why) const;
  bool read_engine(ServingCase& result, std::string& why) const;
  bool read_drafts(ServingCase& result, std::string_view flags, std::string& why) const;
  bool read_load(ServingCase& result, std::string& why) const;
  bool read_lengths(ServingCase& result, std::string& why) const;
  // Where a first token came long before a seat could be free; else empty.
  std::string seats_contradiction(const ServingCase& point) const;
  void read_measured(ServingCase& result) const;
  double latency_limit(std::string_view metric) const;  // 0 = none

  CsvReader csv_;
  const HardwareCatalogue& hardware_;
  PublicFacts facts_;
  mutable std::map<std::string, std::string, std::less<>> generations_;  // by device as rows name it
};

}  // namespace foretoken
