#include "training/layer_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "training/flop_conventions.h"

namespace foretoken {
namespace {

constexpr size_t most_symbols = 100'000;
constexpr int most_nested = 8;

// Writes repetitions out: E, t, m, L and | remain.
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  std::string read() {
    std::string symbols = sequence(0);
    if (at_ < text_.size()) fail("a symbol before this ')'");
    return symbols;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw InputError({.field = "pipeline_model_parallel_layout",
                      .value = fmt::format("{} at character {}",
                                           at_ < text_.size() ? printable(text_.substr(at_, 1)) : "the end", at_ + 1),
                      .expected = expected});
  }

  std::string sequence(int depth) {
    if (depth > most_nested) fail(fmt::format("at most {} nested groups", most_nested));
    std::string symbols;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char symbol = text_[at_];
      if (symbol == ',' || symbol == ' ') {
        ++at_;
        continue;
      }
      std::string one(1, symbol);
      if (symbol == '(') {
        ++at_;
        one = sequence(depth + 1);
        if (at_ == text_.size()) fail("a ')'");
      } else if (std::string_view("EtmL|").find(symbol) == std::string_view::npos) {
        fail("E (embedding), t (layer), m (multi-token prediction), L (loss), | (next chunk), (...)*N or t*N");
      }
      ++at_;
      const size_t times = repetitions();
      if (symbols.size() + times * one.size() > most_symbols) fail("a shorter layout");
      for (size_t i = 0; i < times; ++i) symbols += one;
    }
    return symbols;
  }

  size_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    size_t times = 0;
    const size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - first < 6) {
      times = 10 * times + static_cast<size_t>(text_[at_++] - '0');
    }
    if (at_ == first || times == 0) fail("a number of repetitions");
    return times;
  }

  std::string_view text_;
  size_t at_ = 0;
};

[[noreturn]] void complain(std::string value, std::string expected) {
  throw InputError(
      {.field = "pipeline_model_parallel_layout", .value = std::move(value), .expected = std::move(expected)});
}

// What stages are filled with, in order: layers, draft layers, the loss.
struct SplitItems {
  std::vector<double> flops;
  int64_t layers = 0, drafts = 0;

  ChunkLayers chunk(int64_t first, int64_t end) const {
    const auto size = static_cast<int64_t>(flops.size());
    ChunkLayers chunk{.first = std::min(first, layers), .embedding = first == 0, .head = end == size};
    chunk.count = std::min(end, layers) - chunk.first;
    chunk.drafts = std::max<int64_t>(0, std::min(end, layers + drafts) - std::max(first, layers));
    return chunk;
  }
};

SplitItems items_of(const Model& model, int64_t sequence_length) {
  SplitItems items{.layers = static_cast<int64_t>(model.layers.size()),
                   .drafts = static_cast<int64_t>(model.draft_layers.size())};
  Model one = model;
  one.draft_layers.clear();
  std::vector<std::pair<Layer, double>> known;
  double head = 0;
  const auto add = [&](const Layer& layer) {
    auto found = std::find_if(known.begin(), known.end(), [&](const auto& pair) { return pair.first == layer; });
    if (found == known.end()) {
      one.layers = {layer};
      const TokenFlops flops = token_flops(one, {.sequence_length = sequence_length});
      head = flops.head;
      known.emplace_back(layer, flops.layers + flops.causal_attention);
      found = known.end() - 1;
    }
    items.flops.push_back(found->second);
  };
  for (const Layer& layer : model.layers) add(layer);
  for (const Layer& layer : model.draft_layers) add(layer);
  items.flops.push_back(head * static_cast<double>(1 + items.drafts));
  return items;
}

}  // namespace

std::vector<ChunkLayers> parse_pipeline_layout(std::string_view text) {
  const std::string symbols = LayoutReader(text).read();
  std::vector<ChunkLayers> chunks(1);
  int64_t layers = 0;
  bool embedding = false, loss = false;
  for (const char symbol : symbols) {
    ChunkLayers& chunk = chunks.back();
    if (loss) complain("a symbol after L", "the loss at the end");
    if (symbol == '|') {
      if (chunk == ChunkLayers{.first = layers}) complain("an empty chunk", "at least one symbol between two |");
      chunks.push_back({.first = layers});
      continue;
    }
    if (symbol == 'E') {
      if (embedding || layers > 0 || chunks.size() > 1)
        complain("E after other symbols", "one embedding, at the start");
      chunk.embedding = embedding = true;
    } else if (symbol == 't') {
      if (chunk.drafts > 0 || (chunks.size() > 1 && chunks[chunks.size() - 2].drafts > 0)) {
        complain("t behind m", "multi-token prediction layers after all others");
      }
      ++chunk.count;
      ++layers;
    } else if (symbol == 'm') {
      ++chunk.drafts;
    } else {
      chunk.head = loss = true;
    }
  }
  if (!embedding || !loss) complain(printable(text), "E first and L last, for example Et*3|(tt|)*29m|L");
  return chunks;
}

std::string pipeline_layout_text(const std::vector<ChunkLayers>& layout) {
  const auto repeated = [](char symbol, int64_t times) {
    if (times <= 0) return std::string();
    return times <= 2 ? std::string(static_cast<size_t>(times), symbol) : fmt::format("{}*{}", symbol, times);
  };
  std::vector<std::string> chunks;
  for (const ChunkLayers& chunk : layout) {
    chunks.push_back((chunk.embedding ? "E" : "") + repeated('t', chunk.count) + repeated('m', chunk.drafts) +
                     (chunk.head ? "L" : ""));
  }
  std::string text;
  for (size_t i = 0; i < chunks.size();) {
    size_t end = i + 1;
    while (end < chunks.size() && chunks[end] == chunks[i]) ++end;
    // The last chunk has no | behind it.
    const size_t grouped = (end == chunks.size() ? end - 1 : end) - i;
    if (grouped > 2) {
      text += fmt::format("({}|)*{}", chunks[i], grouped);
      i += grouped;
      continue;
    }
    text += chunks[i];
    if (++i < chunks.size()) text += '|';
  }
  return text;
}

std::vector<std::vector<ChunkLayers>> balanced_layouts(const Model& model, int64_t sequence_length, int64_t most) {
  const SplitItems items = items_of(model, sequence_length);
  const auto count = static_cast<int64_t>(items.flops.size());
  most = std::min(most, count);
  const auto width = static_cast<size_t>(count) + 1;
  std::vector<double> before(width, 0);
  for (size_t i = 0; i + 1 < width; ++i) before[i + 1] = before[i] + items.flops[i];
  // Item by item, for one chunk more in each round: where the last chunk begins.
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<double> least(width, never);
  least[0] = 0;
  std::vector<std::vector<size_t>> begins;
  std::vector<std::vector<ChunkLayers>> layouts(1);
  for (int64_t chunks = 1; chunks <= most; ++chunks) {
    std::vector<double> next(width, never);
    std::vector<size_t>& begin = begins.emplace_back(width, 0);
    for (size_t end = 1; end < width; ++end) {
      for (size_t first = end; first-- > 0;) {
        const double flops = before[end] - before[first];
        const double sum = least[first] + flops * flops;
        if (sum >= next[end]) continue;
        next[end] = sum;
        begin[end] = first;
      }
    }
    least = std::move(next);
    std::vector<ChunkLayers>& layout = layouts.emplace_back(static_cast<size_t>(chunks));
    size_t end = width - 1;
    for (size_t chunk = layout.size(); chunk-- > 0;) {
      const size_t first = begins[chunk][end];
      layout[chunk] = items.chunk(static_cast<int64_t>(first), static_cast<int64_t>(end));
      end = first;
    }
  }
  return layouts;
}

bool needs_layout(const TrainingPlan& plan, const Model& model) {
  if (plan.stages() == 1 || !plan.layout.empty() || plan.first_stage_layers || plan.last_stage_layers ||
      plan.embedding_in_split || plan.loss_in_split || !model.encoder_layers.empty()) {
    return false;
  }
  return static_cast<int64_t>(model.layers.size()) % plan.chunks() != 0 || !model.draft_layers.empty();
}

void balance_stages(TrainingPlan& plan, const Model& model, int64_t sequence_length) {
  if (!needs_layout(plan, model)) return;
  std::vector<std::vector<ChunkLayers>> layouts = balanced_layouts(model, sequence_length, plan.chunks());
  if (static_cast<int64_t>(layouts.size()) > plan.chunks()) plan.layout = std::move(layouts.back());
}

}  // namespace foretoken
