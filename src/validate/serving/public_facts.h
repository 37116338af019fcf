// What is published about measured runs and not repeated in their rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/load/lengths.h"

namespace foretoken {

// An engine's options, in the words of the column engine_flags. A row is meant where benchmark and model are part of
// its columns `source` and `model`, the engine is the same, and so are the kernels of its GPU, or its name where the
// recipe gives names.
struct PublicRecipe {
  std::string benchmark, engine, model;
  std::string generation;  // title of a GpuGeneration; empty = any
  std::string flags;
  bool adds = false;  // to what a row says; else it stands for rows that say nothing
  // Of rows from this day on, whatever they say: the recipe had changed by then. Empty = of any day.
  std::string since;
  std::string until;               // of rows before that day, and of rows without one; empty = of any day
  bool replaces = false;           // what a row says, which is not what it ran
  std::string version;             // how the column engine_version begins; empty = any
  std::string weights;             // as in the column weight_dtype; empty = any
  std::string arrival;             // part of that column; empty = any
  std::vector<std::string> gpus;   // how the column gpu begins, where siblings ran otherwise; empty = any
  int64_t tensor = 0, expert = 0;  // ranks in the columns tp and ep, where layouts ran otherwise; 0 = any
  std::string source;              // where it was published
};

// What separate workers were told, each or, where its ranks attend to requests of their own, TensorRT-LLM's ranks each.
// A row is meant where benchmark and model are part of its columns and the rest agrees.
struct WorkerLimits {
  std::string benchmark, engine, model;
  std::string gpu;      // how the column begins
  std::string weights;  // as in the column weight_dtype
  int64_t input = 0, output = 0;
  int64_t prefill_workers = 0, decode_workers = 0;
  int64_t decode_ranks = 0;                       // of a worker
  bool attends_apart = false;                     // attention is data parallel over these
  std::map<int64_t, int64_t> decode_seats;        // requests at once, by concurrency
  int64_t prefill_seats = 0, prefill_tokens = 0;  // requests at once, tokens in a step; 0 = not said
  double prefill_memory = 0, decode_memory = 0;   // share of a GPU's; 0 = not said
  int64_t decode_graphs = 0;                      // most sequences of a captured step; 0 = not said
  int64_t stream_interval = 1;                    // tokens in a piece of an answer
  std::string source;
};

// Requests of a benchmark's data set, for rows whose length_spec begins so. Means and limits are the published ones,
// the spread gives lognormal lengths the published coefficient of variation.
struct DataSetLengths {
  std::string spec;
  LognormalLength input, output;
  // By the column weight_dtype, where answers of a quantized model are known to have another mean.
  std::map<std::string, LognormalLength, std::less<>> output_by_weights;
  int64_t samples = 0;
  std::string source;

  const LognormalLength& output_of(std::string_view weights) const;
};

// 99% of a run's requests keep these, or the run is not published. A row is meant where benchmark, model and arrival
// are part of its columns; the first entry counts.
struct LatencyLimit {
  std::string benchmark, model, arrival;
  double ttft_ms = 0, tpot_ms = 0;
  std::string source;
};

struct PublicFacts {
  std::vector<PublicRecipe> recipes;
  std::vector<WorkerLimits> workers;
  std::vector<DataSetLengths> data_sets;
  std::vector<LatencyLimit> limits;
};
// serving/recipes.json of a library's folder. InputError for a broken one.
PublicFacts read_public_facts(const std::filesystem::path& data);

// Of vLLM in the published runs of inference-perf, where a table of their stages does not say.
inline constexpr std::string_view staged_runs_engine_version = "0.15.1";  // github.com/inference-sim/training

// Releases of SGLang in rows that name a commit or a branch instead: the last one before it. A row is meant where
// version and model are part of their columns.
struct SglangBuild {
  std::string_view version, model;
  std::string_view release;
};
std::span<const SglangBuild> sglang_builds();

// Tables whose published figures add up by Little's law only where each length is uniform in 1..nominal, the default of
// their load generator, although the command printed beside them asks for fixed lengths. A row is meant where source
// and model are part of their columns.
struct UniformLengths {
  std::string_view source, model;
  std::string_view except;  // part of the names of models whose runs are said to have fixed lengths
};
std::span<const UniformLengths> uniform_lengths_of_tables();

// Conversations as load generators send them: lengths of one run's means.
LognormalLength sharegpt_prompts(double mean_tokens);
LognormalLength sharegpt_answers(double mean_tokens);

// The law whose lengths have this law's mean after the cut at `most`, as published means do.
LognormalLength with_mean_after_cut(LognormalLength law);

// Drafters that checkpoints bring along, with the tokens of their block.
struct BundledDrafter {
  std::string_view method, model;  // part of the model's name
  int64_t drafts = 0;
};
std::span<const BundledDrafter> bundled_drafters();

}  // namespace foretoken
