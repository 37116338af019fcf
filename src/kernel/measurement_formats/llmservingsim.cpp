// Layer tables of the profiler of casys-kaist/LLMServingSim, version 1 (vLLM 0.19 layer hooks, GPU time of a layer's
// kernels; layers ran in turn, so weights and keys were cold): `<device>/<model>_<variant>/tp<N>_<table>.csv[.gz]`,
// microseconds. Sizes come from the model and tp; a rank's shard was measured alone.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/measurement_formats/list.h"
#include "kernel/measurement_rows.h"
#include "model/step.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int64_t most_tokens = 10'000'000;
constexpr Range<int64_t> tokens_range{0, most_tokens};

struct TableName {
  int64_t tensor_ranks = 1;
  std::string table;  // dense, attention, ...
};

// "tp2_dense.csv.gz" -> {2, "dense"}.
std::optional<TableName> parsed_table_name(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (!name.ends_with(".csv") || !name.starts_with("tp")) return std::nullopt;
  name = name.substr(2, name.size() - 6);
  const size_t bar = name.find('_');
  if (bar == std::string::npos) return std::nullopt;
  const std::optional<int64_t> ranks = parse_integer(name.substr(0, bar));
  if (!ranks || *ranks < 1 || *ranks > 1024) return std::nullopt;
  return TableName{.tensor_ranks = *ranks, .table = name.substr(bar + 1)};
}

constexpr std::string_view bf16_folder = "_bf16";

std::optional<FormatMatch> match(const fs::path& path) {
  const std::optional<TableName> name = parsed_table_name(path);
  if (!name) return std::nullopt;
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  FormatMatch found{.device = folder.parent_path().filename().string(), .left_out = {}};
  const std::string model = folder.filename().string();
  constexpr std::string_view tables[] = {"dense", "per_sequence", "attention", "skew", "moe"};
  const bool known = std::find(std::begin(tables), std::end(tables), name->table) != std::end(tables);
  std::error_code error;
  if (!fs::exists(folder / "meta.yaml", error)) {
    if (name->table != "layers_us" && name->table != "attention") return std::nullopt;
    found.left_out = "layers of unfused eager modules (LLMServingSim v0), not single kernels";
  } else if (!known) {
    found.left_out = "not a table of layers";
  } else if (!model.ends_with(bf16_folder)) {
    found.left_out = "only bf16 tables are read";
  }
  return found;
}

// The operators of a model's step on one rank, by number of tokens.
class TimedLayers {
 public:
  TimedLayers(Model model, int64_t tensor_ranks) : model_(std::move(model)), plan_{.tensor = tensor_ranks} {}

  // The operator of that name when `prompt_tokens` of one prompt, or else `decodes` sequences, run; null if the model
  // has none.
  const Operator* find(std::string_view name, int64_t prompt_tokens, int64_t decodes) {
    auto [found, is_new] = steps_.try_emplace({prompt_tokens, decodes});
    if (is_new) {
      const StepRequest request = prompt_tokens > 0
                                      ? StepRequest{.phase = StepPhase::prefill, .input_len = prompt_tokens}
                                      : StepRequest{.phase = StepPhase::decode, .batch = decodes};
      found->second = stage_operators(model_, request, plan_, 0);
    }
    for (const Operator& one : found->second) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

 private:
  Model model_;
  ParallelPlan plan_;
  std::map<std::pair<int64_t, int64_t>, std::vector<Operator>> steps_;
};

struct Layer {
  std::string_view name, operation;  // theirs, ours
  std::string_view variant;
  bool copied = false;  // measured once and repeated in the tables of more ranks
  std::string_view why_not = {};
  bool warm = false;  // reads faster than DRAM could deliver: few different tokens were looked up
};

constexpr std::string_view vllm_kernel = "vllm";

constexpr Layer timed_layers[] = {
    {"embedding", "embed_tokens", vllm_kernel, false, "", true},
    {"layernorm", "", "", true, "the mean of norms with and without the fused residual add"},
    {"final_layernorm", "final_norm", vllm_kernel, true},
    {"qkv_proj", "qkv_proj", ""},
    {"qk_norm", "", "", true, "the table does not say whether norms of queries and keys were added or averaged"},
    {"rotary_emb", "rope", vllm_kernel},
    {"o_proj", "o_proj", ""},
    {"gate_up_proj", "gate_up_proj", ""},
    {"act_fn", "activation", vllm_kernel},
    {"down_proj", "down_proj", ""},
    {"lm_head", "lm_head", ""},
    {"sampler", "sampling", vllm_kernel, true},
};

class TableRows : public MeasurementRows {
 public:
  TableRows(const fs::path& path, int64_t tensor_ranks, Model model)
      : csv_(path), tensor_ranks_(tensor_ranks), layers_(std::move(model), tensor_ranks) {}
  const CsvReader& csv() const override { return csv_; }
  bool next() override { return csv_.next(); }

 protected:
  CsvReader csv_;
  int64_t tensor_ranks_;
  TimedLayers layers_;
};

// dense and per_sequence: one layer per row.
class LayerRows : public TableRows {
 public:
  LayerRows(const fs::path& path, int64_t tensor_ranks, Model model, bool per_sequence)
      : TableRows(path, tensor_ranks, std::move(model)),
        per_sequence_(per_sequence),
        layer_(csv_.column("layer")),
        size_(csv_.column(per_sequence ? "sequences" : "tokens")),
        time_(csv_.column("time_us")) {}

  std::optional<TableRow> read(std::string& why) override {
    const std::string_view name = csv_.cell(layer_);
    const auto* const layer = std::find_if(std::begin(timed_layers), std::end(timed_layers),
                                           [&](const Layer& one) { return one.name == name; });
    if (layer == std::end(timed_layers)) {
      why = fmt::format("layer {} is not known", printable(name));
      return std::nullopt;
    }
    if (!layer->why_not.empty() || (layer->copied && tensor_ranks_ > 1)) {
      why = fmt::format("{}: {}", layer->name,
                        layer->why_not.empty() ? "a copy of the measurement on one rank" : layer->why_not);
      return std::nullopt;
    }
    const int64_t size = csv_.integer(size_, {1, most_tokens});
    const Operator* operation = layers_.find(layer->operation, per_sequence_ ? 0 : size, per_sequence_ ? size : 0);
    if (operation == nullptr) {
      why = fmt::format("{}: the model has no such layer", layer->name);
      return std::nullopt;
    }
    return TableRow{.shape = operation->shape,
                    .variant = layer->variant,
                    .microseconds = csv_.number(time_),
                    .caches = layer->warm ? Caches::benchmark : Caches::cold};
  }

 private:
  bool per_sequence_;
  size_t layer_, size_, time_;
};

// moe: `activated_experts` of them share the tokens evenly, which costs what a layer with so many experts does.
class ExpertRows : public TableRows {
 public:
  ExpertRows(const fs::path& path, int64_t tensor_ranks, Model model)
      : TableRows(path, tensor_ranks, std::move(model)),
        tokens_(csv_.column("tokens")),
        experts_(csv_.column("activated_experts")),
        time_(csv_.column("time_us")) {}

  std::optional<TableRow> read(std::string& why) override {
    const Operator* operation = layers_.find("experts", csv_.integer(tokens_, {1, most_tokens}), 0);
    if (operation == nullptr) {
      why = "the model has no experts";
      return std::nullopt;
    }
    MoeShape shape = std::get<MoeShape>(operation->shape);
    shape.experts = csv_.integer(experts_, {1, shape.experts});
    if (shape.experts < shape.top_k || shape.experts % shape.ep != 0) {
      why = "fewer experts than a token needs";
      return std::nullopt;
    }
    return TableRow{.shape = shape, .variant = "triton", .microseconds = csv_.number(time_), .caches = Caches::cold};
  }

 private:
  size_t tokens_, experts_, time_;
};

// FlashAttention 2 as vLLM 0.19 runs it on these GPUs.
constexpr std::string_view attention_kernel = "fa2_v019";

// attention: one prompt chunk over cached tokens beside decodes of equal length. skew: decodes of two lengths; its
// times are sums over the profiler's three iterations (rows that both tables hold differ by that factor).
class AttentionRows : public TableRows {
 public:
  AttentionRows(const fs::path& path, int64_t tensor_ranks, Model model, bool unequal)
      : TableRows(path, tensor_ranks, std::move(model)),
        unequal_(unequal),
        chunk_(csv_.column(unequal ? "pc" : "prefill_chunk")),
        cached_(csv_.column(unequal ? "kp" : "kv_prefill")),
        decodes_(csv_.column(unequal ? "n" : "n_decode")),
        keys_(csv_.column(unequal ? "kvs" : "kv_decode")),
        time_(csv_.column(unequal ? "t_skew_us" : "time_us")) {
    if (unequal) {
      long_decodes_ = csv_.column("nb");
      long_keys_ = csv_.column("kv_big");
    }
  }

  std::optional<TableRow> read(std::string& why) override {
    const Operator* operation = layers_.find("attention", 0, 1);
    const auto* heads = operation != nullptr ? std::get_if<AttentionShape>(&operation->shape) : nullptr;
    if (heads == nullptr) {
      why = "the model has no attention of this kind";
      return std::nullopt;
    }
    const int64_t chunk = csv_.integer(chunk_, tokens_range), cached = csv_.integer(cached_, tokens_range);
    const int64_t decodes = csv_.integer(decodes_, tokens_range), keys = csv_.integer(keys_, tokens_range) + 1;
    MixedAttentionShape mixed{.heads = heads->heads,
                              .kv_heads = heads->kv_heads,
                              .head_dim = heads->head_dim,
                              .value_dim = heads->value_dim,
                              .window = heads->window,
                              .dtype = heads->dtype,
                              .kv_dtype = heads->kv_dtype,
                              .writes_kv = heads->writes_kv};
    if (chunk > 0) mixed.add_prompts(1, chunk, chunk + cached);
    const int64_t longer = unequal_ ? csv_.integer(*long_decodes_, {0, decodes}) : 0;
    mixed.add_decodes(decodes - longer, keys);
    if (longer > 0) mixed.add_decodes(longer, csv_.integer(*long_keys_, tokens_range) + 1);
    if (chunk == 0 && decodes == 0) {
      why = "an empty batch";
      return std::nullopt;
    }
    constexpr double iterations = 3;
    return TableRow{.shape = simplest_shape(mixed),
                    .variant = attention_kernel,
                    .microseconds = csv_.number(time_) / (unequal_ ? iterations : 1),
                    .caches = Caches::cold};
  }

 private:
  bool unequal_;
  size_t chunk_, cached_, decodes_, keys_, time_;
  std::optional<size_t> long_decodes_, long_keys_;
};

std::unique_ptr<MeasurementRows> open(const fs::path& path, const ModelCatalogue* models) {
  const std::optional<TableName> name = parsed_table_name(path);
  ensure(name.has_value(), "the path was matched before");
  std::string model_name = fs::absolute(path).lexically_normal().parent_path().filename().string();
  model_name.resize(model_name.size() - std::min(model_name.size(), bf16_folder.size()));
  if (models == nullptr) {
    throw InputError({.source = path.string(),
                      .value = printable(model_name),
                      .expected = "a model library that says how large this model's layers are"});
  }
  Model model = models->model(model_name);
  const int64_t ranks = name->tensor_ranks;
  if (name->table == "attention" || name->table == "skew")
    return std::make_unique<AttentionRows>(path, ranks, std::move(model), name->table == "skew");
  if (name->table == "moe") return std::make_unique<ExpertRows>(path, ranks, std::move(model));
  return std::make_unique<LayerRows>(path, ranks, std::move(model), name->table == "per_sequence");
}

}  // namespace

MeasurementFormat llmservingsim_format() {
  return {.name = "LLMServingSim", .match = match, .open = open};
}

}  // namespace foretoken
