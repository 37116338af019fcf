#include "compose/cache_layout.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Equal parts of all layers of a stage, in order of first use.
struct PartCount {
  CachePart part;
  int64_t layers = 0;
};

std::vector<PartCount> distinct_parts(const std::vector<std::vector<CachePart>>& layers) {
  std::vector<PartCount> counts;
  for (const std::vector<CachePart>& layer : layers) {
    for (const CachePart& part : layer) {
      const auto found =
          std::find_if(counts.begin(), counts.end(), [&](const PartCount& count) { return count.part == part; });
      if (found == counts.end()) {
        counts.push_back({part, 1});
      } else {
        ++found->layers;
      }
    }
  }
  return counts;
}

bool is_state(const CachePart& part) {
  return part.per_token.value() == 0;
}

std::string kind_of(const CachePart& part) {
  if (is_state(part)) return "recurrent state";
  return part.window > 0 ? fmt::format("window of {}", part.window) : "full attention";
}

// Tokens per block so that the thinnest attention page holds the largest state.
int64_t block_tokens_beside_states(const std::vector<PartCount>& counts, int64_t block_size) {
  double state = 0, per_token = 0;
  for (const PartCount& count : counts) {
    state = std::max(state, count.part.state.value());
    const double bytes = count.part.per_token.value();
    if (bytes > 0) per_token = per_token > 0 ? std::min(per_token, bytes) : bytes;
  }
  if (state == 0 || per_token == 0) return block_size;
  const double least = per_token * static_cast<double>(block_size);
  return block_size * std::max<int64_t>(1, static_cast<int64_t>(std::ceil(state / least)));
}

CacheLayout shared_layout(const std::vector<PartCount>& counts, int64_t block_size) {
  const int64_t tokens = block_tokens_beside_states(counts, block_size);
  double page = 0;
  int64_t fewest = counts.front().layers, most = 0;
  for (const PartCount& count : counts) {
    page = std::max({page, count.part.per_token.value() * static_cast<double>(tokens), count.part.state.value()});
    fewest = std::min(fewest, count.layers);
    most = std::max(most, count.layers);
  }
  const int64_t group_size = 4 * most < 5 * fewest ? most : fewest;
  CacheLayout layout{.block_bytes = Bytes(page * static_cast<double>(group_size)), .shared_pool = true};
  for (const PartCount& count : counts) {
    // A page too large for the usual number of tokens takes a multiple of it.
    const double usual = count.part.per_token.value() * static_cast<double>(tokens);
    const int64_t fitting = is_state(count.part) ? 0 : tokens * static_cast<int64_t>(page / usual);
    for (int64_t first = 0; first < count.layers; first += group_size) {
      layout.groups.push_back({.kind = kind_of(count.part),
                               .layers = std::min(group_size, count.layers - first),
                               .block_tokens = fitting,
                               .window = count.part.window,
                               .block_bytes = layout.block_bytes});
    }
  }
  return layout;
}

CacheLayout separate_layout(const std::vector<PartCount>& counts, int64_t block_size) {
  CacheLayout layout{.shared_pool = false};
  for (const PartCount& count : counts) {
    const auto layers = static_cast<double>(count.layers);
    const bool state = is_state(count.part);
    const Bytes block =
        state ? count.part.state * layers : count.part.per_token * (layers * static_cast<double>(block_size));
    layout.groups.push_back({.kind = kind_of(count.part),
                             .layers = count.layers,
                             .block_tokens = state ? 0 : block_size,
                             .window = count.part.window,
                             .block_bytes = block});
    if (!state) layout.block_bytes += block;
  }
  if (layout.block_bytes.value() == 0) layout.block_bytes = layout.groups.front().block_bytes;
  return layout;
}

}  // namespace

CacheLayout cache_layout(const Model& model, const EngineFlags& flags, const ParallelPlan& plan, int64_t stage) {
  ensure(flags.block_size > 0, "flags are resolved before a cache is laid out");
  const std::vector<PartCount> counts = distinct_parts(rank_cache(model, flags.kv_dtype, plan, stage));
  if (counts.empty()) return {};
  CacheLayout layout = engine_kind(flags.engine).shares_blocks ? shared_layout(counts, flags.block_size)
                                                               : separate_layout(counts, flags.block_size);
  const auto grows = [](const CacheGroup& group) { return group.block_tokens > 0; };
  const auto first = std::find_if(layout.groups.begin(), layout.groups.end(), grows);
  if (first != layout.groups.end()) layout.block_tokens = first->block_tokens;
  return layout;
}

int64_t sequence_blocks(const CacheGroup& group, int64_t tokens, int64_t step_tokens) {
  if (group.block_tokens == 0) return 1;
  const int64_t whole = ceil_divide(tokens, group.block_tokens);
  if (group.window == 0) return whole;
  // One more: a window rarely starts at the border of a block (vLLM, SlidingWindowSpec).
  return std::min(whole, ceil_divide(group.window - 1 + step_tokens, group.block_tokens) + 1);
}

Bytes sequence_bytes(const CacheLayout& layout, int64_t tokens, int64_t step_tokens) {
  Bytes sum;
  for (const CacheGroup& group : layout.groups) {
    sum += group.block_bytes * static_cast<double>(sequence_blocks(group, tokens, step_tokens));
  }
  return sum;
}

}  // namespace foretoken
