// Step times from operators that were measured inside an engine, as LLMServingSim's profiler writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/steps/composed_steps.h"
#include "serving/steps/step_communication.h"
#include "serving/steps/step_times.h"

namespace foretoken {

struct OpTableOptions {
  int64_t layers = 1;
  int64_t tensor = 1;                // tables of one rank
  std::vector<int64_t> graph_sizes;  // tokens that steps are padded to; larger steps are not padded
  int64_t processors = 0;            // of the device, and key heads of one rank: which decodes run side by side
  int64_t key_heads = 1;
  int64_t expert_layers = 0;  // of all layers; 0 = the model has no experts
  int64_t experts = 1, top_k = 1;
  int64_t expert_ranks = 1;                                    // over which the experts are spread
  int64_t lock_step_ranks = 1;                                 // data-parallel ranks that share them
  std::shared_ptr<StepCommunication> communication = nullptr;  // among several ranks, which tables do not have
};
OpTableOptions op_table_options(const ComposedStepsConfig& config);

// A folder with dense.csv, per_sequence.csv, attention.csv and, where it was measured, skew.csv (each may be .csv.gz),
// or with a folder tp<N> that has them. Microseconds of one layer or call:
//   dense         layer,tokens,time_us           embedding, final_layernorm once; layernorm twice a layer; others once
//   per_sequence  layer,sequences,time_us        lm_head and sampler, by sequences that yield a token
//   attention     prefill_chunk,kv_prefill,n_decode,kv_decode,time_us      one chunk and equal decodes
//   skew          decodes of unequal context: t_mean_us (all at the mean), t_max_us (all at the longest), t_skew_us
//   moe           tokens,activated_experts,time_us[,ep]   router and experts of a layer, needed where the model has
//   them
// Experts spread over R ranks work on the T tokens of all ranks, of which each rank has experts E/R (1 - (1-k/E)^T)
// awake: rows of ep = R at T tokens, else rows of all experts (of tp1/ where the tensor ranks hold whole experts) at
// T/R tokens. Gate, up and down of dense.csv are those of layers without experts. With several ranks `communication` is
// added to every step.
// Between measured points times are interpolated linearly, over chunks linearly in the work, over contexts of decodes
// along the lines on either side of a bend. Decodes of unequal context
// alone: FlashAttention 2 gives each sequence and key head a block, two blocks to a processor, and splits contexts only
// where blocks fill less than 0.8 of the places (num_splits_heuristic). Otherwise the block of the longest context
// waits for a place, then walks at a pace that the skew rows tell, and the step ends with it if that is later than
// t_mean. In mixed steps they take t_mean + a (t_max - t_mean), `a` from the skew rows of 32 to 128 sequences and mean
// contexts of 512 to 2048. Several chunks count as one of the same tokens and work.
std::unique_ptr<StepTimes> read_op_tables(const std::filesystem::path& folder, const OpTableOptions& options);

// The same from texts by name (dense, per_sequence, attention, skew, moe), for tests and fuzzing.
std::unique_ptr<StepTimes> op_tables_from_text(const std::map<std::string, std::string>& tables,
                                               const OpTableOptions& options);

}  // namespace foretoken
