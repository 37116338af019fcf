#include "report/training/memory_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/units.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// 2588 -> "2,588"
std::string grouped(double whole) {
  std::string digits = fmt::format("{:.0f}", whole);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string grouped(int64_t whole) {
  return grouped(static_cast<double>(whole));
}

std::string signed_bytes(double bytes) {
  return bytes < 0 ? "-" + bytes_text(-bytes) : bytes_text(bytes);
}

std::string interval_of(const Estimate& part) {
  if (part.low == part.high) return "";
  return fmt::format("{} to {}", signed_bytes(part.low), signed_bytes(part.high));
}

std::string_view moment_name(PeakMoment moment) {
  return moment == PeakMoment::sampling ? "sampling" : "forward";
}

std::string_view covered_by(const EngineKind& kind) {
  switch (kind.budget) {
    case MemoryBudget::of_total:
      return "of all";
    case MemoryBudget::of_free_before_weights:
      return "of what the context leaves";
    case MemoryBudget::of_free_after_weights:
      return "of what weights and activations leave";
  }
  return "";
}

std::string headline(const ServingMemory& memory, const EngineKind& kind) {
  const EngineFlags& flags = memory.flags;
  return fmt::format(
      "Memory per GPU under {}: {} {:g}, max-num-batched-tokens {}, max-num-seqs {}, max-model-len {}, block-size {}, "
      "{} cache{}{}",
      flags.engine, kind.fraction_name, flags.memory_fraction, flags.max_num_batched_tokens, flags.max_num_seqs,
      flags.max_model_len, memory.layout.block_tokens, dtype_name(flags.kv_dtype),
      flags.enforce_eager ? ", enforce-eager" : "",
      memory.stage > 0 ? fmt::format(" (pipeline stage {} is the tightest)", memory.stage) : "");
}

// What the platform of a device calls graphs and what a process holds before it allocates anything.
struct PlatformWords {
  std::string_view graphs, context;
};

PlatformWords words_of(std::string_view platform) {
  if (platform == "cuda") return {"CUDA graphs", "CUDA context"};
  if (platform == "rocm") return {"HIP graphs", "HIP context"};
  return {"graphs", "driver and runtime"};
}

std::string parts_table(const ServingMemory& memory, const EngineKind& kind) {
  const bool in_total = kind.budget == MemoryBudget::of_total;
  const std::string outside = "outside the budget";
  Table table({{"part", Table::Align::left}, {"size"}, {"90% interval"}, {"", Table::Align::left}});
  const auto add = [&](std::string part, const Estimate& size, std::string remark) {
    table.add({std::move(part), signed_bytes(size.value), interval_of(size), std::move(remark)});
  };
  add("allocatable", memory.total, fmt::format("{:.1f} GiB, as reported by the driver", memory.total.value / gibi));
  add("budget", memory.budget, fmt::format("{:g} {}", memory.flags.memory_fraction, covered_by(kind)));
  table.add_rule();
  add("weights", memory.weights, "");
  add("peak activations", memory.profile.peak_bytes,
      fmt::format("{}{}", memory.profile.moment == PeakMoment::sampling ? "while sampling" : "in the forward pass",
                  kind.budget == MemoryBudget::of_free_before_weights ? ", " + outside : ""));
  add("kernels, collectives", memory.runtime,
      kind.budget == MemoryBudget::of_free_before_weights ? outside : "outside PyTorch");
  const PlatformWords words = words_of(memory.platform);
  add(fmt::format("{} {}", memory.graph_count, words.graphs), memory.graphs, kind.graphs_in_budget ? "" : outside);
  add(std::string(words.context), memory.context, in_total ? outside : "");
  if (memory.kv_pool.value > 0) {
    add("KV cache", memory.kv_pool, "");
  } else {
    table.add(
        {"KV cache", "0 B", "", fmt::format("nothing is left: {} too little", bytes_text(-memory.kv_pool.value))});
  }
  table.add_rule();
  add("unused", memory.unused, memory.runs_out_while_starting() ? "OUT OF MEMORY while starting" : "");
  return table.text();
}

std::string cache_text(const ServingMemory& memory) {
  const CacheLayout& layout = memory.layout;
  if (layout.groups.empty()) return "The model keeps no state between steps.\n";
  std::string text = fmt::format(
      "KV cache: {} blocks of {} (90% interval {} to {}), {} tokens; {} sequence{} of {} tokens",
      grouped(memory.blocks.value), layout.block_tokens > 0 ? counted(layout.block_tokens, "token") : "one sequence",
      grouped(memory.blocks.low), grouped(memory.blocks.high), grouped(memory.tokens.value),
      grouped(memory.sequences.value), memory.sequences.value == 1 ? "" : "s", grouped(memory.flags.max_model_len));
  text = wrap_lines(text, page_width(), 2);
  if (layout.groups.size() == 1) return text;
  Table table({{"kind of layer", Table::Align::left},
               {"layers"},
               {"groups"},
               {"tokens a block"},
               {"bytes a block"},
               {"blocks a sequence"}});
  for (size_t first = 0; first < layout.groups.size();) {
    const CacheGroup& group = layout.groups[first];
    size_t end = first;
    int64_t layers = 0, blocks = 0;
    for (; end < layout.groups.size() && layout.groups[end].kind == group.kind; ++end) {
      layers += layout.groups[end].layers;
      blocks += sequence_blocks(layout.groups[end], memory.flags.max_model_len, memory.flags.max_num_batched_tokens);
    }
    table.add({group.kind, std::to_string(layers), std::to_string(end - first),
               group.block_tokens > 0 ? std::to_string(group.block_tokens) : "-", bytes_text(group.block_bytes.value()),
               grouped(blocks)});
    first = end;
  }
  return text + table.text();
}

std::string demand_text(const ServingMemory& memory, const CacheDemand& demand) {
  const int64_t fitting = memory.sequences_of(demand.tokens_each, demand.step_tokens);
  return fmt::format("Sequences of {} tokens that fit at once: {}; this step has {}: {}\n", grouped(demand.tokens_each),
                     grouped(fitting), grouped(demand.sequences),
                     fitting >= demand.sequences ? "fits" : "DOES NOT FIT");
}

std::string failure_text(const ServingMemory& memory) {
  // vLLM refuses to start; the others start and refuse the sequence.
  const bool refuses = engine_kind(memory.flags.engine).budget == MemoryBudget::of_total || memory.kv_pool.value <= 0;
  std::string text = fmt::format("{}: {}", refuses ? "WILL NOT START" : "DOES NOT FIT", memory_shortage(memory));
  if (memory.remedies.empty()) return wrap_lines(text + "; no single change tried here helps", page_width(), 2);
  text = wrap_lines(text + ". Any of these would do:", page_width(), 2);
  for (const Remedy& remedy : memory.remedies) {
    text += fmt::format("  {}  ({} sequence{} of {} tokens)\n", remedy.change, grouped(remedy.sequences),
                        remedy.sequences == 1 ? "" : "s", grouped(remedy.longest_model));
  }
  return text;
}

Estimate at_least_zero(Estimate bytes) {
  bytes.value = std::max(bytes.value, 0.0);
  bytes.low = std::max(bytes.low, 0.0);
  bytes.high = std::max(bytes.high, 0.0);
  return bytes;
}

Json flags_json(const EngineFlags& flags) {
  return Json::object({{"engine", flags.engine},
                       {"memory_fraction", flags.memory_fraction},
                       {"max_num_batched_tokens", flags.max_num_batched_tokens},
                       {"max_num_seqs", flags.max_num_seqs},
                       {"max_model_len", flags.max_model_len},
                       {"block_size", flags.block_size},
                       {"kv_cache_dtype", dtype_name(flags.kv_dtype)},
                       {"enforce_eager", flags.enforce_eager}});
}

}  // namespace

Json serving_memory_json(const ServingMemory& memory, const CacheDemand& demand) {
  Json groups = Json::array();
  for (const CacheGroup& group : memory.layout.groups) {
    groups.push(Json::object({{"kind", group.kind},
                              {"layers", group.layers},
                              {"block_tokens", group.block_tokens},
                              {"window", group.window},
                              {"block_bytes", group.block_bytes.value()},
                              {"blocks_per_sequence", sequence_blocks(group, memory.flags.max_model_len,
                                                                      memory.flags.max_num_batched_tokens)}}));
  }
  Json remedies = Json::array();
  for (const Remedy& remedy : memory.remedies) {
    remedies.push(Json::object(
        {{"change", remedy.change}, {"sequences", remedy.sequences}, {"max_model_len", remedy.longest_model}}));
  }
  const int64_t fitting = memory.sequences_of(demand.tokens_each, demand.step_tokens);
  return Json::object({{"flags", flags_json(memory.flags)},
                       {"stage", memory.stage},
                       {"bytes", Json::object({{"allocatable", to_json(memory.total)},
                                               {"budget", to_json(memory.budget)},
                                               {"weights", to_json(memory.weights)},
                                               {"peak_activations", to_json(memory.profile.peak_bytes)},
                                               {"runtime", to_json(memory.runtime)},
                                               {"graphs", to_json(memory.graphs)},
                                               {"context", to_json(memory.context)},
                                               {"kv_cache", to_json(at_least_zero(memory.kv_pool))},
                                               {"unused", to_json(memory.unused)}})},
                       {"peak_moment", moment_name(memory.profile.moment)},
                       {"graphs", memory.graph_count},
                       {"block_tokens", memory.layout.block_tokens},
                       {"block_bytes", memory.layout.block_bytes.value()},
                       {"blocks", to_json(memory.blocks)},
                       {"tokens", to_json(memory.tokens)},
                       {"sequences", to_json(memory.sequences)},
                       {"groups", groups},
                       {"starts", memory.starts},
                       {"asked_model_len", memory.asked_model_len},
                       {"short_by_bytes", memory.short_by.value()},
                       {"remedies", remedies},
                       {"demand", Json::object({{"sequences", demand.sequences},
                                                {"tokens_each", demand.tokens_each},
                                                {"fitting_sequences", fitting},
                                                {"fits", fitting >= demand.sequences}})}});
}

std::string shorter_context_note(const ServingMemory& memory) {
  if (memory.asked_model_len == 0) return "";
  return fmt::format(
      "The KV cache has no room for a request of {} tokens. {} still starts, but it refuses prompts of {} tokens or "
      "more "
      "and ends an answer when prompt and output have that many.",
      grouped(static_cast<double>(memory.asked_model_len)), memory.flags.engine,
      grouped(static_cast<double>(memory.flags.max_model_len)));
}

std::string serving_memory_text(const ServingMemory& memory, const CacheDemand& demand) {
  const EngineKind& kind = engine_kind(memory.flags.engine);
  std::string text =
      wrap_lines(headline(memory, kind), page_width(), 2) + parts_table(memory, kind) + cache_text(memory);
  if (const std::string note = shorter_context_note(memory); !note.empty()) text += wrap_lines(note, page_width(), 2);
  text += memory.starts ? demand_text(memory, demand) : failure_text(memory);
  return text;
}

}  // namespace foretoken
