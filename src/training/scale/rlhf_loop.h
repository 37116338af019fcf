// One iteration of reinforcement learning on a language model: answers are generated, scored by other models, trained
// on, and the new weights go back to where answers are generated (HybridFlow / veRL, arXiv 2409.19256; OpenRLHF, arXiv
// 2405.11143).
//
//   colocated, synchronous  generation + scoring + training + switching of all devices between them
//   split, synchronous      the same on two pools, one of them idle at a time
//   split, one step behind  max(generation, scoring + training): answers come from the weights before the last update
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Which models an algorithm runs, and how many answers to a prompt it wants.
struct RlhfAlgorithm {
  std::string_view name, summary;
  bool critic = false, reference = true, reward_model = true;
  int64_t samples_per_prompt = 1;
  int64_t epochs = 1;  // over the answers of one iteration
};
std::span<const RlhfAlgorithm> rlhf_algorithms();
const RlhfAlgorithm* find_rlhf_algorithm(std::string_view name);  // nullptr = unknown
std::vector<std::string> rlhf_algorithm_names();

// Log-normal, cut off at `most`.
struct ResponseLengths {
  double mean = 1000;  // tokens, before the cut
  double sigma = 0.7;  // of the logarithm; 0 = all the same
  double most = 1e9;

  double mean_tokens() const;                      // after the cut
  double mean_square_tokens() const;               // the same of their squares
  double mean_longest_of(double responses) const;  // of so many
  double cut_share() const;                        // of answers that the limit ends
};

// A decode step takes step_seconds + sequences x sequence_seconds: two steps from the serving layer, with few and with
// many sequences, give both.
struct RolloutEngine {
  int64_t devices = 1;           // of one engine
  int64_t most_sequences = 256;  // decoded together
  double step_seconds = 0;
  double sequence_seconds = 0;
  double prompt_token_seconds = 0;  // each prompt is read once, whatever the samples
};

// Of one token of prompt and answer; devices x seconds, assumed to divide evenly over any number of devices.
struct ModelCost {
  double forward_device_seconds = 0;
  double training_device_seconds = 0;
};

enum class RlhfPlacement : uint8_t { colocated, split };
std::string_view rlhf_placement_name(RlhfPlacement placement);
enum class RlhfTiming : uint8_t { synchronous, one_step_behind };

struct RlhfPlan {
  RlhfAlgorithm algorithm;
  int64_t prompts = 1;  // of one iteration
  double prompt_tokens = 512;
  ResponseLengths responses;
  RolloutEngine engine;
  ModelCost actor, critic, reference, reward;  // those the algorithm does not run are ignored
  double weight_bytes = 0;                     // of the actor as it generates
  double sync_bytes_per_second = 100e9;        // to every engine at once: a broadcast
  double switched_bytes_per_device = 0;  // colocated: what leaves device memory for generation and comes back after
  double host_bytes_per_second = 20e9;   // each device
  double other_seconds = 0;              // advantages, filtering, input: whatever overlaps with nothing
  RlhfPlacement placement = RlhfPlacement::colocated;
  RlhfTiming timing = RlhfTiming::synchronous;
  int64_t devices = 1;         // of all pools
  int64_t trainer_unit = 1;    // a pool that trains has a multiple of so many devices: whole replicas
  int64_t least_trainers = 0;  // of a split that is chosen: fewer have too little memory

  // Prompt and answer of the sequence that a token picked at random belongs to: what is linear in a sequence's length
  // for each token, as attention is, costs as much as if all had this one.
  double sequence_tokens() const;
  double longest_sequence() const;  // expected in an iteration
  double context_tokens() const;    // of an answer that is being generated, in the mean
  double cached_tokens() const;     // the same in the KV cache, where the answers to a prompt share its tokens

  double samples() const { return static_cast<double>(prompts * algorithm.samples_per_prompt); }
};

struct RlhfPart {
  std::string name;
  double seconds = 0;
  bool hidden = false;  // behind the other pool's work: no part of the sum
};

struct RlhfPool {
  std::string name;
  int64_t devices = 0;
  double busy = 0;  // share of the iteration
};

struct RlhfIteration {
  double seconds = 0;
  std::vector<RlhfPart> parts;  // those not hidden add up to `seconds`
  std::vector<RlhfPool> pools;
  double longest_response = 0;   // expected tokens
  double response_tokens = 0;    // of all samples
  double tokens_per_second = 0;  // prompt and answer over the whole iteration: the throughput HybridFlow reports
};

// Seconds to generate all samples on so many devices. Engines share samples evenly. Each of an engine's slots works off
// answers one after the other, so the last one ends after tokens / slots + longest of the last - mean: exact for up to
// `most_sequences` answers an engine, an approximation beyond.
double rollout_seconds(const RlhfPlan& plan, int64_t rollout_devices);

// `rollout_devices`: of a split, a multiple of one engine's that leaves whole replicas; nothing = the best. Ignored
// when colocated.
RlhfIteration rlhf_iteration(const RlhfPlan& plan, std::optional<int64_t> rollout_devices = {});

// The split with the shortest iteration; the fewest rollout devices among equals.
int64_t best_rollout_devices(const RlhfPlan& plan);

}  // namespace foretoken
