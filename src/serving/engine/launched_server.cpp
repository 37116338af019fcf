#include "serving/engine/launched_server.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/yaml_json.h"
#include "compose/engine_release.h"
#include "serving/engine/launch_drafts.h"
#include "serving/engine/launch_flags.h"
#include "serving/speculation/draft_method.h"
#include "serving/speculation/speculative_config.h"

namespace foretoken {
namespace {

bool is_true(const std::optional<std::string>& value) {
  return !value || equal_ignoring_case(*value, "true") || *value == "1";
}

bool is_negative_or_word(const std::string& text) {
  const std::optional<double> number = parse_scaled_number(text);
  return !number || *number < 0;
}

// As scheme_from_name() knows them, but of formats that weights must have been stored in: the checkpoint tells them.
bool quantizes_at_start(std::string_view scheme) {
  return scheme == "fp8" || scheme == "w8a8_fp8" || scheme == "w8a8_int8" || scheme == "mxfp8";
}

constexpr std::string_view engine_variables[] = {"VLLM_", "SGLANG_", "SGL_", "TRTLLM_", "TLLM_"};
// Of these, those of logs, ports and paths.
constexpr std::string_view harmless_parts[] = {"PORT", "HOST",  "LOG",   "CACHE", "ROOT",
                                               "KEY",  "TRACE", "USAGE", "DIR",   "TIMEOUT"};

class ServerReader {
 public:
  ServerReader(const LaunchWords& words, const std::string& source, const LaunchLookups& lookups,
               LaunchRemarks& remarks)
      : words_(words), source_(source), lookups_(lookups), remarks_(remarks) {
    server_.style = words.style;
  }

  LaunchedServer read() {
    take_variables();
    take_words();
    if (const auto file = said("config_file")) take_file(*file);
    set_engine();
    set_model();
    set_formats();
    set_parallelism();
    set_limits();
    set_host_cache();
    set_speculation();
    set_task();
    set_role();
    return std::move(server_);
  }

 private:
  [[noreturn]] void fail(const std::string& flag, const std::string& value, const std::string& expected) const {
    throw InputError({.source = source_, .path = flag, .value = printable(value), .expected = expected});
  }

  std::optional<std::string> said(const std::string& field) const {
    const auto found = said_.find(field);
    return found == said_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<int64_t> number(const std::string& field) const {
    const auto text = said(field);
    if (!text) return std::nullopt;
    const std::optional<int64_t> value = parse_integer(*text);
    if (!value || *value < 1) fail(written_as_.at(field), *text, "a whole number");
    return value;
  }

  void set(const std::string& field, Json value) { server_.fields.set(field, std::move(value)); }

  void not_simulated(const std::string& field, const std::string& value) {
    remarks_.not_simulated.push_back(fmt::format("{} {}", written_as_.at(field), value));
  }

  void take_variables() {
    for (const std::string& variable : words_.environment) {
      const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
      const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
      const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
      if (std::none_of(std::begin(engine_variables), std::end(engine_variables), starts)) continue;
      const bool harmless = std::any_of(std::begin(harmless_parts), std::end(harmless_parts), has);
      (harmless ? remarks_.without_effect : remarks_.not_simulated).push_back(variable);
    }
  }

  void take_words() {
    const std::vector<std::string>& words = words_.arguments;
    size_t i = 0;
    const auto is_flag = [](const std::string& word) {
      return word.size() > 1 && word.front() == '-' && !parse_number(word);
    };
    while (i < words.size()) {
      const std::string& word = words[i++];
      if (!is_flag(word)) {
        if (!server_model_.empty() || said("model")) {
          remarks_.unknown.push_back(word);
        } else {
          server_model_ = word;
        }
        continue;
      }
      const size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      std::optional<std::string> value;
      if (equals != std::string::npos) value = word.substr(equals + 1);
      if (take_short_level(name)) continue;
      const size_t dot = name.find('.');
      const LaunchFlag* flag = find_launch_flag(server_.style, name);
      bool negated = false;
      if (flag == nullptr && name.starts_with("--no-")) {
        flag = find_launch_flag(server_.style, "--" + name.substr(5));
        negated = flag != nullptr;
      }
      std::string key;
      if (flag == nullptr && dot != std::string::npos) {
        key = name.substr(dot + 1);
        flag = find_launch_flag(server_.style, name.substr(0, dot));
      }
      if (flag == nullptr) {
        const bool has_value = !value && i < words.size() && !is_flag(words[i]);
        if (has_value) ++i;
        remarks_.unknown.push_back(name);
        continue;
      }
      if (flag->takes_list()) {
        std::string list = value.value_or("");
        while (i < words.size() && !is_flag(words[i])) list += (list.empty() ? "" : " ") + words[i++];
        value = list;
      } else if ((flag->takes_value() || !key.empty()) && !value) {
        if (i == words.size()) fail(name, "", "a value");
        value = words[i++];
      }
      if (!key.empty()) {
        parts_[std::string(flag->field)].emplace_back(key, *value);
        written_as_.emplace(flag->field, name);
        if (flag->field.empty()) note(*flag, name, value);
        continue;
      }
      take(*flag, name, negated ? std::optional<std::string>("false") : value);
    }
  }

  // -O3, as compilers have it.
  bool take_short_level(const std::string& name) {
    const bool is_level = server_.style == LaunchStyle::vllm && name.size() == 3 && name.starts_with("-O") &&
                          name[2] >= '0' && name[2] <= '9';
    if (!is_level) return false;
    said_["optimization_level"] = name.substr(2);
    written_as_["optimization_level"] = "-O";
    return true;
  }

  void note(const LaunchFlag& flag, const std::string& name, const std::optional<std::string>& value) {
    const bool harmless = flag.use == LaunchFlagUse::harmless || flag.use == LaunchFlagUse::harmless_on ||
                          flag.use == LaunchFlagUse::harmless_list;
    if (harmless) {
      remarks_.without_effect.push_back(name);
    } else {
      remarks_.not_simulated.push_back(value ? fmt::format("{} {}", name, *value) : name);
    }
  }

  void take(const LaunchFlag& flag, const std::string& name, const std::optional<std::string>& value) {
    const std::string field(flag.field);
    switch (flag.use) {
      case LaunchFlagUse::value:
        if (value && !value->empty()) set(field, *value);
        written_as_[field] = name;
        return;
      case LaunchFlagUse::on:
        set(field, is_true(value));
        return;
      case LaunchFlagUse::off:
        set(field, !is_true(value));
        return;
      case LaunchFlagUse::derived_on:
        if (!is_true(value)) return;
        said_[field] = "true";
        written_as_[field] = name;
        return;
      case LaunchFlagUse::derived:
      case LaunchFlagUse::derived_list:
        said_[field] = value.value_or("");
        written_as_[field] = name;
        return;
      case LaunchFlagUse::harmless:
      case LaunchFlagUse::harmless_on:
      case LaunchFlagUse::harmless_list:
      case LaunchFlagUse::other:
      case LaunchFlagUse::other_on:
        note(flag, name, value);
    }
  }

  // Keys of a file are flags without their dashes; what the line says itself goes first with vLLM and SGLang.
  void take_file(const std::string& path) {
    const std::optional<std::string> text = lookups_.read_file ? lookups_.read_file(path) : std::nullopt;
    if (!text) {
      remarks_.not_simulated.push_back(fmt::format("{} {} (the file was not found)", written_as_["config_file"], path));
      return;
    }
    const Json json = json_of_yaml(parse_yaml(*text, path), path);
    take_members(JsonView(json, path), "--");
  }

  void take_members(const JsonView& map, const std::string& prefix) {
    const bool file_wins = server_.style == LaunchStyle::trtllm;
    for (const auto& [key, value] : map.members()) {
      const std::string name = prefix + key;
      const LaunchFlag* flag = find_launch_flag(server_.style, name);
      if (value.is(Json::Kind::object) && flag == nullptr) {
        take_members(value, name + ".");
        continue;
      }
      if (value.is(Json::Kind::null)) {  // as if it were not there, but TensorRT-LLM then captures no graphs
        if (name == "--cuda_graph_config") set("enforce_eager", true);
        continue;
      }
      if (flag == nullptr) {
        remarks_.unknown.push_back(name.substr(2));
        continue;
      }
      const bool is_said = said_.contains(std::string(flag->field)) || server_.fields.find(flag->field) != nullptr;
      if (is_said && !file_wins && !flag->field.empty()) continue;
      take(*flag, name, text_of(value.value()));
    }
  }

  static std::string text_of(const Json& value) {
    switch (value.kind()) {
      case Json::Kind::string:
        return value.string();
      case Json::Kind::boolean:
        return value.boolean() ? "true" : "false";
      case Json::Kind::integer:
        return fmt::format("{}", value.integer());
      case Json::Kind::number:
        return number_text(value.number());
      case Json::Kind::array: {
        std::string list;
        for (const Json& item : value.items()) list += (list.empty() ? "" : " ") + text_of(item);
        return list;
      }
      default:
        return value.dump(0);
    }
  }

  void set_engine() {
    for (const EngineKind& kind : engine_kinds()) {
      if (kind.launch != server_.style || server_.fields.find("engine") != nullptr) continue;
      set("engine", kind.name);
    }
    if (words_.version.empty()) return;
    const std::string family(engine_kind(server_.fields.find("engine")->string()).family);
    const std::string name = family + "-" + words_.version;
    const std::optional<EngineRelease> release = engine_release(name);
    if (!release) return;
    set("engine", name);
    const ReleaseBehavior& behavior = release_behavior(family, words_.version);
    if (behavior.kind == family && behavior.stack == family) return;
    remarks_.notes.push_back(
        fmt::format("{} is simulated with the memory rules of engine {} and the stack that covers this release.",
                    release_title(*release), behavior.kind));
  }

  void set_model() {
    const std::string model = said("model").value_or(server_model_);
    // plan serve writes this where an engine loads a checkpoint that nobody knows the name of.
    constexpr std::string_view placeholder = "MODEL";
    if (model == placeholder) {
      remarks_.notes.emplace_back(
          "MODEL in the launch line stands for a checkpoint of the model given with {model}; {quantization} gives its "
          "number format.");
    } else if (!model.empty()) {
      set("model", model);
    }
  }

  void set_formats() {
    if (const auto type = said("kv_cache_dtype"); type && *type != "auto") {
      const bool is_fp4 = type->starts_with("fp4") || *type == "nvfp4";
      set("kv_cache_dtype", type->starts_with("fp8") ? "fp8" : is_fp4 ? "fp4" : *type);
    }
    if (const auto type = said("dtype"); type && (*type == "float32" || *type == "float")) {
      set("quantization", "fp32");
    } else if (type) {
      remarks_.without_effect.push_back(fmt::format("{} {}", written_as_["dtype"], *type));
    }
    if (const auto scheme = said("quantization")) set_quantization(*scheme);
    if (const auto config = said("torchao_config")) set_torchao(*config);
  }

  void set_quantization(const std::string& scheme) {
    const std::string flag = fmt::format("{} {}", written_as_["quantization"], scheme);
    if (quantizes_at_start(scheme)) {
      set("quantization", scheme);
    } else if (scheme == "bitsandbytes") {
      set("quantization", "int4_wo");
      remarks_.not_simulated.push_back(flag + " (simulated as int4_wo: bitsandbytes' own kernels are slower)");
    } else {
      remarks_.without_effect.push_back(flag + " (the checkpoint's own format is used)");
      remarks_.checkpoint_format = flag;
    }
  }

  // SGLang, layers/torchao_utils.py: formats that it gives weights while it loads them.
  void set_torchao(const std::string& config) {
    struct Format {
      std::string_view prefix, scheme;
    };
    constexpr Format formats[] = {{"int4wo", "int4_wo"}, {"int8wo", "int8_wo"}, {"int8dq", "int8"}, {"fp8dq", "fp8"}};
    for (const Format& format : formats) {
      if (config.starts_with(format.prefix)) return set("quantization", std::string(format.scheme));
    }
    if (!config.empty()) not_simulated("torchao_config", config);
  }

  void set_parallelism() {
    if (server_.style == LaunchStyle::vllm) {
      set_slices_of_vllm();
      set_exchange(said("all2all_backend").value_or(""), "all2all_backend");
      set_redundant_experts();
      return;
    }
    int64_t tensor = number("tensor_parallel_size").value_or(1);
    const int64_t all_ranks = tensor;
    std::optional<int64_t> data = number("data_parallel_size");
    const bool shares_attention = said("enable_dp_attention").has_value();
    if (attention_ranks_are_whole(server_.style) && shares_attention) data = tensor;
    if (shares_attention && data && *data > 1) {
      if (tensor % *data != 0) {
        fail(written_as_["tensor_parallel_size"], fmt::format("{}", tensor),
             fmt::format("a multiple of the {} data-parallel attention ranks", *data));
      }
      tensor /= *data;
    }
    if (said("tensor_parallel_size") || tensor > 1) set("tensor_parallel_size", tensor);
    if (const auto stages = number("pipeline_parallel_size"); stages) set("pipeline_parallel_size", *stages);
    if (data && *data > 1) set("data_parallel_size", *data);
    std::string exchange = said("all2all_backend").value_or("");
    if (said("enable_deepep_moe")) exchange = "deepep";
    std::optional<int64_t> experts = number("expert_parallel_size");
    if (exchange == "megamoe") {  // it exchanges as DeepEP does, inside the kernel of the experts
      set("stack", std::string(sglang_mega_moe_stack));
      exchange = "deepep";
    }
    const bool spreads_all = exchange.starts_with("deepep") || exchange == "mooncake" || said("enable_ep_moe");
    if (spreads_all && !experts) experts = all_ranks;
    const bool slices_experts = shares_attention && data.value_or(1) > 1 && all_ranks > 1;
    if (slices_experts && !experts) experts = ranks_of_slices(all_ranks);
    if (experts && *experts > 1) set("expert_parallel_size", *experts);
    if (exchange == "deepep") {
      const std::string mode = said("deepep_mode").value_or("auto");
      if (mode == "normal") exchange = "deepep_high_throughput";
      if (mode == "low_latency") exchange = "deepep_low_latency";
    }
    set_exchange(exchange, said("all2all_backend") ? "all2all_backend" : "enable_deepep_moe");
  }

  // vLLM, layers/fused_moe/config.py: without expert parallelism each expert is cut over all tensor-parallel ranks of
  // all data-parallel ones. With adapters the ranks are simulated apart, which the engine's builder says.
  void set_slices_of_vllm() {
    const Json* adapters = server_.fields.find("enable_lora");
    if (adapters != nullptr && adapters->boolean()) return;
    const auto size = [&](const char* field) {
      const Json* value = server_.fields.find(field);
      constexpr int64_t most = 1'000'000;  // far beyond what any command takes
      return value == nullptr ? 1 : std::clamp<int64_t>(parse_integer(value->string()).value_or(1), 1, most);
    };
    const Json* shares_experts = server_.fields.find("enable_expert_parallel");
    const int64_t data = size("data_parallel_size");
    if (data < 2 || (shares_experts != nullptr && shares_experts->boolean())) return;
    if (const auto ranks = ranks_of_slices(size("tensor_parallel_size") * data)) set("expert_parallel_size", *ranks);
  }

  // A rank holds a slice of every expert: as many bytes as whole ones would take, where they divide. A dense model has
  // none.
  std::optional<int64_t> ranks_of_slices(int64_t ranks) {
    const Json* model = server_.fields.find("model");
    const std::optional<int64_t> known =
        lookups_.experts_of ? lookups_.experts_of(model == nullptr ? "" : model->string()) : std::nullopt;
    if (!known) {
      remarks_.not_simulated.push_back(
          fmt::format("experts sliced over all ranks (the model is not known; if it has experts, give "
                      "{{expert_parallel_size}} {})",
                      ranks));
    }
    const int64_t experts = known.value_or(0);
    if (experts == 0) return std::nullopt;
    if (experts % ranks != 0) {
      remarks_.not_simulated.push_back(fmt::format(
          "experts sliced over all ranks (simulated with all {} experts on every attention rank, because {} ranks do "
          "not divide them)",
          experts, ranks));
      return std::nullopt;
    }
    const std::string flag =
        server_.style == LaunchStyle::vllm ? "--enable-expert-parallel" : fmt::format("--ep-size {}", ranks);
    remarks_.not_simulated.push_back(fmt::format(
        "experts sliced over all ranks (simulated as whole experts divided over {} ranks, as with {})", ranks, flag));
    return ranks;
  }

  void set_exchange(const std::string& backend, const std::string& field) {
    constexpr std::array<std::string_view, 5> known = {"allgather_reducescatter", "deepep", "deepep_high_throughput",
                                                       "deepep_low_latency", "none"};
    if (backend.empty()) return;
    if (std::find(known.begin(), known.end(), backend) != known.end()) {
      set("all2all_backend", backend);
    } else {
      not_simulated(field, backend);
    }
  }

  void set_redundant_experts() {
    if (const auto copies = said("num_redundant_experts")) set("num_redundant_experts", *copies);
    const Json config = object_of("eplb_config");
    if (const Json* copies = config.find("num_redundant_experts")) set("num_redundant_experts", *copies);
  }

  // A flag whose value is JSON, or that was given key by key.
  Json object_of(const std::string& field) {
    Json object = Json::object();
    if (const auto text = said(field)) {
      const std::string where = fmt::format("{}: {}", source_, written_as_[field]);
      object = parse_json(*text, where);
      if (object.kind() != Json::Kind::object) fail(written_as_[field], *text, "a JSON object");
    }
    const auto parts = parts_.find(field);
    if (parts == parts_.end()) return object;
    for (const auto& [key, value] : parts->second) {
      const std::optional<int64_t> whole = parse_integer(value);
      object.set(key, whole ? Json(*whole) : Json(value));
    }
    return object;
  }

  void set_limits() {
    if (server_.style != LaunchStyle::trtllm) {
      // auto and -1: as long as memory allows.
      const auto length = said("max_model_len");
      if (length && is_negative_or_word(*length)) {
        not_simulated("max_model_len", *length);
      } else if (length) {
        set("max_model_len", *length);
      }
    }
    if (const auto chunk = said("max_num_batched_tokens")) {
      if (is_negative_or_word(*chunk)) {
        not_simulated("max_num_batched_tokens", *chunk);
      } else {
        set("max_num_batched_tokens", *chunk);
      }
    }
    if (const auto tokens = number("max_total_tokens")) {
      const Json* page = server_.fields.find("block_size");
      const int64_t page_tokens = page == nullptr ? 1 : parse_integer(page->string()).value_or(1);
      set("num_gpu_blocks_override", *tokens / std::max<int64_t>(1, page_tokens));
    }
    if (said("equal_cache_groups")) not_simulated("equal_cache_groups", "(layers with windows would keep all tokens)");
    if (const auto padding = said("graph_padding"); padding && is_true(padding)) {
      remarks_.without_effect.push_back(written_as_["graph_padding"]);
    } else if (padding) {
      not_simulated("graph_padding", *padding + " (batches between the captured sizes would run without graphs)");
    }
    if (const auto sizes = said("graph_sizes")) set_graph_sizes(*sizes);
    const Json compilation = object_of("compilation_config");
    if (const Json* sizes = compilation.find("cudagraph_capture_sizes")) set_graph_sizes(text_of(*sizes));
    if (const Json* most = compilation.find("max_cudagraph_capture_size")) set("max_cudagraph_capture_size", *most);
    const Json* graphs = compilation.find("cudagraph_mode");
    if (graphs != nullptr && equal_ignoring_case(text_of(*graphs), "none")) set("enforce_eager", true);
    if (said("optimization_level") == "0") set("enforce_eager", true);
    if (const auto policy = said("capacity_policy"); policy == "MAX_UTILIZATION") {
      set("scheduler", "trtllm_max_utilization");
    } else if (policy == "STATIC_BATCH") {
      set("scheduler", "trtllm_static");
    }
  }

  // GiB of each engine, as vLLM counts.
  void set_host_cache() {
    constexpr double gib = 1 << 30;
    if (const auto backend = said("kv_offloading_backend"); backend && *backend != "native") {
      not_simulated("kv_offloading_backend", *backend);
    }
    if (server_.style == LaunchStyle::vllm) {
      const Json transfer = object_of("kv_transfer_config");
      const Json* connector = transfer.find("kv_connector");
      const Json* extra = transfer.find("kv_connector_extra_config");
      const bool offloads = connector != nullptr && text_of(*connector) == "OffloadingConnector";
      const Json* bytes = offloads && extra != nullptr && extra->kind() == Json::Kind::object
                              ? extra->find("cpu_bytes_to_use")
                              : nullptr;
      if (bytes != nullptr) set("kv_offloading_size", parse_number(text_of(*bytes)).value_or(0) / gib);
      return;
    }
    const bool is_on = server_.style == LaunchStyle::trtllm || said("enable_host_cache");
    const auto size = said("host_cache_size");
    if (!is_on || !size) {
      if (said("enable_host_cache")) not_simulated("enable_host_cache", "without a size in GB");
      return;
    }
    const std::optional<double> value = parse_number(*size);
    if (!value || *value < 0) fail(written_as_["host_cache_size"], *size, "a number of at least 0");
    if (*value == 0) return;
    const auto ranks = [&](const char* field) {
      const Json* set_as = server_.fields.find(field);
      return set_as == nullptr ? int64_t{1} : set_as->integer();
    };
    const int64_t devices = ranks("tensor_parallel_size") * ranks("pipeline_parallel_size");
    set("kv_offloading_size", host_cache_bytes(server_.style, devices, *value) / gib);
    if (const auto policy = said("host_cache_policy")) set("kv_write_policy", *policy);
  }

  void set_graph_sizes(const std::string& list) {
    int64_t most = 0;
    std::string spaced = list;
    std::replace(spaced.begin(), spaced.end(), ',', ' ');
    for (const std::string_view word : split_words(spaced, " ")) {
      const std::optional<int64_t> size = parse_integer(word);
      if (!size) fail("CUDA graph sizes", std::string(word), "a whole number");
      most = std::max(most, *size);
    }
    if (most > 0) set("max_cudagraph_capture_size", most);
  }

  void set_speculation() {
    Json config = with_known_keys(object_of("speculative_config"));
    if (const auto algorithm = said("speculative_algorithm")) {
      const Json drafts = draft_config(server_.style, {.algorithm = *algorithm,
                                                       .steps = number("speculative_num_steps"),
                                                       .draft_tokens = number("speculative_num_draft_tokens"),
                                                       .top_k = number("speculative_eagle_topk"),
                                                       .model = said("speculative_draft_model_path")});
      for (const auto& [key, value] : drafts.members()) config.set(key, value);
    }
    if (config.members().empty()) return;
    set("speculative_config", without_head(with_method(std::move(config))));
  }

  // vLLM has more than are followed.
  Json with_known_keys(const Json& config) {
    Json known = Json::object();
    for (const auto& [key, value] : config.members()) {
      if (value.kind() == Json::Kind::null) continue;
      if (is_speculative_key(key)) {
        known.set(key, value);
      } else {
        not_simulated("speculative_config", fmt::format("with {} {}", key, text_of(value)));
      }
    }
    return known;
  }

  // vLLM, config/speculative.py: the name of a drafter says how it drafts; all others are smaller models.
  static Json with_method(Json config) {
    struct Part {
      std::string_view of_name, method;
    };
    constexpr Part parts[] = {{"eagle-", "eagle"}, {"eagle3", "eagle3"}, {"dflash", "dflash"}, {"dspark", "dspark"}};
    const Json* model = config.find("model");
    if (config.find("method") != nullptr || model == nullptr) return config;
    const std::string name = lower_case(text_of(*model));
    std::string_view method = "draft_model";
    for (const Part& part : parts) {
      if (name.find(part.of_name) == std::string::npos) continue;
      method = part.method;
      break;
    }
    config.set("method", method);
    return config;
  }

  // Draft heads are on nobody's list of models: those that a method can copy from the target are left out.
  Json without_head(const Json& config) {
    const Json* method = config.find("method");
    const Json* model = config.find("model");
    const std::vector<std::string> names = draft_method_names();
    if (method == nullptr || model == nullptr) return config;
    const auto known = std::find(names.begin(), names.end(), method->string());
    if (known == names.end() || !draft_method(*known).can_copy_target) return config;
    remarks_.not_simulated.push_back(
        fmt::format("the draft {} (a layer like the target's is assumed)", model->string()));
    Json changed = Json::object();
    for (const auto& [key, value] : config.members()) {
      if (key != "model") changed.set(key, value);
    }
    return changed;
  }

  // Requests of a pooling model ask for an embedding or a score.
  void set_task() {
    constexpr std::string_view scores[] = {"score", "classify", "reward"};
    std::string task = said("is_embedding") ? "embed" : "";
    for (const char* field : {"runner", "convert", "task"}) {
      const auto word = said(field);
      if (!word) continue;
      if (*word == "embed" || *word == "embedding" || *word == "pooling") {
        task = "embed";
      } else if (std::find(std::begin(scores), std::end(scores), *word) != std::end(scores)) {
        task = "score";
      } else {
        remarks_.without_effect.push_back(written_as_[field]);
      }
    }
    if (!task.empty()) set("task", task);
  }

  void set_role() {
    const Json transfer = object_of("kv_transfer_config");
    if (const Json* role = transfer.find("kv_role")) {
      if (role->string() == "kv_producer") server_.role = "prefill";
      if (role->string() == "kv_consumer") server_.role = "decode";
    }
    if (said("is_prefill")) server_.role = "prefill";
    if (said("is_decode")) server_.role = "decode";
    if (const auto role = said("role")) {
      const std::string name = lower_case(*role);
      if (name == "prefill" || name == "context") server_.role = "prefill";
      if (name == "decode" || name == "generation") server_.role = "decode";
    }
  }

  const LaunchWords& words_;
  const std::string& source_;
  const LaunchLookups& lookups_;
  LaunchRemarks& remarks_;
  LaunchedServer server_;
  std::string server_model_;
  std::map<std::string, std::string> said_;        // of derived fields
  std::map<std::string, std::string> written_as_;  // the flags that said so
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> parts_;
};

}  // namespace

LaunchedServer read_server(const LaunchWords& words, const std::string& source, const LaunchLookups& lookups,
                           LaunchRemarks& remarks) {
  return ServerReader(words, source, lookups, remarks).read();
}

}  // namespace foretoken
