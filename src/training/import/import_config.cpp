#include "training/import/import_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "training/decoder_sizes.h"
#include "training/import/config_format.h"
#include "training/import/toml.h"
#include "training/import/virtual_stages.h"

namespace foretoken {
namespace {

// Looking for the nearest name takes its time; a file of so many unknown keys, or such long ones, has no typing slips.
constexpr size_t most_hints = 500, longest_hinted = 100;

const KeyRule* rule_of(const ConfigFormat& format, std::string_view key) {
  const auto found = std::ranges::find_if(format.rules, [&](const KeyRule& rule) { return rule.key == key; });
  return found == format.rules.end() ? nullptr : &*found;
}

size_t known_keys(const ConfigFormat& format, const ConfigEntries& entries) {
  return static_cast<size_t>(std::ranges::count_if(
      entries.entries, [&](const ConfigEntry& entry) { return rule_of(format, entry.key) != nullptr; }));
}

struct RecognisedConfig {
  const ConfigFormat* format = nullptr;
  ConfigEntries entries;
};

// The format of this syntax that knows most keys; none where no format knows any.
RecognisedConfig recognise(ConfigSyntax syntax, ConfigEntries entries) {
  const ConfigFormat* best = nullptr;
  size_t most = 0;
  for (const ConfigFormat& format : config_formats()) {
    if (format.syntax != syntax) continue;
    const size_t known = known_keys(format, entries);
    if (known <= most) continue;
    most = known;
    best = &format;
  }
  return {.format = best, .entries = std::move(entries)};
}

RecognisedConfig recognise_text(std::string_view text, const std::string& source) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{') {
    return recognise(ConfigSyntax::tree, json_entries(text, source));
  }
  // Flags first: a script is hardly ever YAML, and a YAML file holds no flags that Megatron-LM knows.
  RecognisedConfig arguments = recognise(ConfigSyntax::arguments, argument_entries(text, source));
  if (arguments.format != nullptr) return arguments;
  if (looks_like_toml(text)) return recognise(ConfigSyntax::tree, toml_entries(text, source));
  return recognise(ConfigSyntax::tree, yaml_entries(text, source));
}

[[noreturn]] void fail_unrecognised(const std::string& source, std::string_view text) {
  const bool is_empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  std::string formats;
  for (const ConfigFormat& format : config_formats()) {
    formats += fmt::format("{}{}", formats.empty() ? "" : "; ", format.summary);
  }
  throw InputError({.source = source,
                    .value = is_empty ? "an empty file" : "",
                    .expected = "keys of a training configuration: " + formats});
}

// A slip of the pen keeps the length, nearly: `load` does not mean `optimizer-cpu-offload`.
std::string nearest_key(const ConfigFormat& format, const std::string& key) {
  constexpr size_t most_letters = 3;
  std::vector<std::string> keys;
  for (const KeyRule& rule : format.rules) {
    const size_t longer = std::max(rule.key.size(), key.size()), shorter = std::min(rule.key.size(), key.size());
    if (longer - shorter <= most_letters) keys.emplace_back(rule.key);
  }
  return nearest_name(key, keys).value_or("");
}

// `known*` is all that begins so.
bool matches(std::string_view known, std::string_view key) {
  return known.ends_with('*') ? key.starts_with(known.substr(0, known.size() - 1)) : key == known;
}

bool is_harmless(const ConfigFormat& format, std::string_view key) {
  return std::ranges::any_of(format.harmless, [&](std::string_view known) { return matches(known, key); });
}

const UnmodeledKey* unmodeled_key(const ConfigFormat& format, std::string_view key) {
  const auto found =
      std::ranges::find_if(format.not_modeled, [&](const UnmodeledKey& known) { return matches(known.key, key); });
  return found == format.not_modeled.end() ? nullptr : &*found;
}

// Numbers that a plan may complain about, by the field of the question.
struct NumberOfFile {
  const char* field;
  std::optional<int64_t> SaidSettings::*member;
};
constexpr NumberOfFile numbers_of_file[] = {{"tensor_model_parallel_size", &SaidSettings::tensor},
                                            {"pipeline_model_parallel_size", &SaidSettings::pipeline},
                                            {"context_parallel_size", &SaidSettings::context},
                                            {"expert_model_parallel_size", &SaidSettings::expert},
                                            {"num_virtual_stages_per_pipeline_rank", &SaidSettings::virtual_stages},
                                            {"micro_batch_size", &SaidSettings::micro_batch},
                                            {"global_batch_size", &SaidSettings::global_batch},
                                            {"seq_length", &SaidSettings::sequence_length}};

// Reads an entry and notes which numbers it set.
void read_entry(ImportedTraining& imported, const KeyRule& rule, const ConfigValue& value, const std::string& key) {
  const SaidSettings before = imported.said;
  rule.read(imported.said, value);
  for (const NumberOfFile& number : numbers_of_file) {
    if (imported.said.*number.member != before.*number.member) imported.keys[number.field] = key;
  }
}

// In the order of the file; what rules say of one setting does not depend on it.
void read_entries(ImportedTraining& imported, const RecognisedConfig& config) {
  for (const ConfigEntry& entry : config.entries.entries) {
    const KeyRule* rule = rule_of(*config.format, entry.key);
    const UnmodeledKey* unmodeled = unmodeled_key(*config.format, entry.key);
    if (rule == nullptr && unmodeled != nullptr) {
      const bool is_off = unmodeled->changes_nothing_if_false && !flag_from_text(entry.value).value_or(true);
      (is_off ? imported.without_effect : imported.not_modeled).push_back(entry.key);
    } else if (rule == nullptr && is_harmless(*config.format, entry.key)) {
      imported.without_effect.push_back(entry.key);
    } else if (rule == nullptr) {
      const bool hints = imported.ignored.size() < most_hints && entry.key.size() <= longest_hinted;
      imported.ignored.push_back({.key = entry.key,
                                  .line = entry.line,
                                  .nearest = hints ? nearest_key(*config.format, entry.key) : std::string()});
    } else if (entry.computed || (!rule->takes_auto && equal_ignoring_case(entry.value, "auto"))) {
      imported.notes.push_back(fmt::format("{} line {}: {} = {} is set when the job starts, so it is ignored",
                                           config.entries.source, entry.line, entry.key, printable(entry.value)));
    } else {
      read_entry(imported, *rule, ConfigValue(config.entries.source, entry), entry.key);
    }
  }
}

int64_t padded(int64_t vocabulary, int64_t multiple) {
  return (vocabulary + multiple - 1) / multiple * multiple;
}

// Nothing, and a note of them all, where sizes are missing.
std::optional<Model> model_of_sizes(const SaidSettings& said, const std::string& source,
                                    std::vector<std::string>& notes) {
  if (!said.layers && !said.hidden && !said.heads) return std::nullopt;  // the file is not about a model
  const std::pair<const char*, const std::optional<int64_t>*> needed[] = {
      {"layers", &said.layers}, {"hidden size", &said.hidden},    {"attention heads", &said.heads},
      {"MLP width", &said.ffn}, {"vocabulary", &said.vocabulary}, {"sequence length", &said.sequence_length}};
  std::vector<std::string> missing;
  for (const auto& [name, value] : needed) {
    if (!*value) missing.emplace_back(name);
  }
  if (!missing.empty()) {
    notes.push_back(
        fmt::format("no model: its {} {} missing", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"));
    return std::nullopt;
  }
  const int64_t multiple = said.vocabulary_multiple.value_or(1) * said.tensor.value_or(1);
  return decoder_model({.name = source,
                        .layers = *said.layers,
                        .hidden = *said.hidden,
                        .heads = *said.heads,
                        .kv_heads = said.kv_heads.value_or(*said.heads),
                        .head_dim = said.head_dim.value_or(std::max<int64_t>(1, *said.hidden / *said.heads)),
                        .ffn = *said.ffn,
                        .vocabulary = said.vocabulary_multiple ? padded(*said.vocabulary, multiple) : *said.vocabulary,
                        .positions = std::max(said.positions.value_or(0), *said.sequence_length),
                        .gated = said.gated.value_or(true),
                        .experts = said.experts.value_or(0),
                        .top_k = said.top_k.value_or(1),
                        .expert_ffn = said.expert_ffn.value_or(*said.ffn),
                        .shared_ffn = said.shared_ffn.value_or(0),
                        .dense_layers = said.dense_layers.value_or(0),
                        .latent_attention = said.latent_attention.value_or(false),
                        .learned_positions = said.learned_positions.value_or(false),
                        .tied_embeddings = said.tied_embeddings.value_or(false),
                        .biases = said.biases.value_or(false),
                        .layer_norm = said.layer_norm.value_or(false),
                        .qk_norm = said.qk_norm.value_or(false),
                        .draft_layers = said.draft_layers.value_or(0)});
}

// Megatron-LM gives the layers of a virtual stage rather than the number of stages.
void count_virtual_stages(ImportedTraining& imported, const std::string& source) {
  SaidSettings& said = imported.said;
  if (!said.layers_per_virtual_stage || said.virtual_stages || !said.layers) return;
  said.virtual_stages = virtual_stages_of(plan_with({}, imported, 0), *said.layers, *said.layers_per_virtual_stage,
                                          {.source = source, .path = "layers of a virtual stage"});
}

template <class T>
void overlay(T& target, const std::optional<T>& said) {
  if (said) target = *said;
}
void overlay(TrafficOverlap& target, const std::optional<bool>& said) {
  if (said) target = *said ? TrafficOverlap::on : TrafficOverlap::off;
}

}  // namespace

std::optional<int64_t> ImportedTraining::devices() const {
  if (said.devices) return said.devices;
  if (!said.nodes || !said.devices_per_node) return std::nullopt;
  return *said.nodes * *said.devices_per_node;
}

ImportedTraining parse_training_config(std::string_view text, const std::string& source) {
  const RecognisedConfig config = recognise_text(text, source);
  if (config.format == nullptr) fail_unrecognised(source, text);
  ImportedTraining imported{.format = std::string(config.format->name)};
  read_entries(imported, config);
  config.format->complete(imported.said, config.entries, imported.notes);
  imported.leaves_recompute_open = config.format->leaves_recompute_open && !imported.said.recompute;
  count_virtual_stages(imported, source);
  imported.model = model_of_sizes(imported.said, source, imported.notes);
  return imported;
}

ImportedTraining import_training_config(const std::filesystem::path& file) {
  return parse_training_config(read_file(file, size_t{4} << 20), file.string());
}

namespace {

// Copies of the model, each sharded over so many ranks (0 = all), must be all replicas there are.
int64_t ranks_of_copy(const SaidSettings& said, const ParallelPlan& plan) {
  const int64_t copies = *said.sharded_copies, replicas = plan.data * plan.context;
  const int64_t ranks = said.shard_ranks.value_or(replicas / copies);
  if (copies * ranks == replicas) return copies == 1 ? 0 : ranks;
  const std::string sharded =
      said.shard_ranks ? fmt::format("{} x {} shards", copies, ranks) : fmt::format("{} sharded copies", copies);
  throw InputError(
      {.source = "the training file",
       .value = fmt::format("{} on {} data-parallel ranks", sharded, replicas),
       .expected = "replicas and shards that multiply to the data-parallel ranks (GPUs / tensor / pipeline)"});
}

}  // namespace

void check_batch_sizes(const ImportedTraining& imported, int64_t replicas) {
  const SaidSettings& said = imported.said;
  if (!said.global_batch || !said.micro_batch || !said.accumulation) return;
  const int64_t product = *said.micro_batch * *said.accumulation * replicas;
  if (*said.global_batch == product) return;
  throw InputError({.source = "the training file",
                    .path = imported.keys.at("global_batch_size"),
                    .value = fmt::format("{}", *said.global_batch),
                    .expected = fmt::format("{}: micro-batch {} x {} accumulation steps x {} data-parallel ranks",
                                            product, *said.micro_batch, *said.accumulation, replicas)});
}

TrainingPlan plan_with(TrainingPlan plan, const ImportedTraining& imported, int64_t devices) {
  const SaidSettings& said = imported.said;
  overlay(plan.parallel.tensor, said.tensor);
  overlay(plan.parallel.pipeline, said.pipeline);
  overlay(plan.parallel.context, said.context);
  overlay(plan.parallel.expert, said.expert);
  overlay(plan.parallel.sequence, said.sequence_parallel);
  overlay(plan.micro_batch, said.micro_batch);
  overlay(plan.virtual_stages, said.virtual_stages);
  overlay(plan.embedding_in_split, said.embedding_in_split);
  overlay(plan.loss_in_split, said.loss_in_split);
  overlay(plan.sharding, said.sharding);
  overlay(plan.overlaps.gradients, said.overlaps_gradients);
  overlay(plan.overlaps.parameters, said.overlaps_parameters);
  overlay(plan.overlaps.tensor, said.overlaps_tensor);
  overlay(plan.overlaps.experts, said.overlaps_experts);
  overlay(plan.shard_ranks, said.shard_ranks);
  overlay(plan.recompute, said.recompute);
  overlay(plan.recompute_modules, said.recompute_modules);
  overlay(plan.recompute_layers, said.recompute_layers);
  overlay(plan.context_exchange, said.context_exchange);
  overlay(plan.dispatcher, said.dispatcher);
  if (said.first_stage_layers) plan.first_stage_layers = said.first_stage_layers;
  if (said.last_stage_layers) plan.last_stage_layers = said.last_stage_layers;
  overlay(plan.schedule, said.schedule);
  if (plan.virtual_stages > 1 && plan.schedule == "1f1b") plan.schedule = "interleaved";

  const int64_t replica = plan.parallel.tensor * plan.parallel.context * plan.parallel.pipeline;
  const int64_t all = devices > 0 ? devices : imported.devices().value_or(0);
  if (all >= replica) {
    plan.parallel.data = all / replica;
    if (said.sharded_copies) plan.shard_ranks = ranks_of_copy(said, plan.parallel);
  }
  if (said.global_batch) {
    plan.global_batch = *said.global_batch;
  } else if (said.accumulation) {
    plan.global_batch = plan.micro_batch * *said.accumulation * plan.parallel.data;
  }
  return plan;
}

}  // namespace foretoken
