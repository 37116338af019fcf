#include "model/number_formats.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// A key of the text part, or of the document around it.
std::optional<JsonView> find_outside_in(const ConfigReader& config, std::string_view key) {
  if (auto value = config.text().find(key)) return value;
  return config.whole().find(key);
}

DType read_dtype(ConfigReader& config) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    const auto value = find_outside_in(config, key);
    if (!value) continue;
    std::string name = value->string();
    if (name == "auto") break;
    if (name.starts_with("torch.")) name.erase(0, 6);
    const auto dtype = dtype_from_name(name);
    if (!dtype) {
      const std::vector<std::string> known = {"bfloat16", "float16", "float32"};
      value->fail("bfloat16, float16 or float32", nearest_name(name, known).value_or(""));
    }
    if (*dtype == DType::fp8) return DType::bf16;  // activations are never kept in fp8
    if (*dtype != DType::bf16 && *dtype != DType::fp16 && *dtype != DType::fp32) {
      value->fail("bfloat16, float16 or float32");
    }
    return *dtype;
  }
  config.note("config states no torch_dtype: bf16 is assumed");
  return DType::bf16;
}

// Which layers a list of module names speaks of. Names without a number speak of all.
class NamedLayers {
 public:
  void add(const std::vector<int64_t>& layers) {
    numbers_.insert(layers.begin(), layers.end());
    everywhere_ = everywhere_ || layers.empty();
  }
  // At least half of the `layers` that have such a module.
  bool are_most_of(int64_t layers) const {
    return everywhere_ || (!numbers_.empty() && 2 * std::ssize(numbers_) >= layers);
  }

 private:
  std::set<int64_t> numbers_;
  bool everywhere_ = false;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

// What a regex must not find beside its match says nothing of the modules that it names: "(?!mtp\.).*mlp" -> ".*mlp".
std::string without_negative_lookaround(std::string_view pattern) {
  std::string kept;
  int64_t depth = 0;  // of parentheses, from that of the group on
  for (size_t at = 0; at < pattern.size(); ++at) {
    const std::string_view rest = pattern.substr(at);
    if (depth > 0) {
      depth += rest.starts_with('(') ? 1 : rest.starts_with(')') ? -1 : 0;
    } else if (rest.starts_with("(?!") || rest.starts_with("(?<!")) {
      depth = 1;
    } else {
      kept += rest.front();
    }
  }
  return kept;
}

// "(q|k|v)_proj" -> "q_proj|k_proj|v_proj".
std::string with_alternatives_in_full(std::string_view pattern) {
  constexpr std::string_view ending = "_proj";
  std::string full;
  size_t open = full.npos;  // the parenthesis in `full` that opened last and has not closed
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '(') open = full.size();
    full += pattern[at];
    if (pattern[at] != ')') continue;
    if (open != full.npos && pattern.substr(at + 1).starts_with(ending)) {
      std::string words = full.substr(open + 1, full.size() - open - 2);
      if (words.starts_with("?:")) words.erase(0, 2);
      full.resize(open);
      full += fmt::format("{}", fmt::join(split(words, "|"), std::string(ending) + "|"));
    }
    open = full.npos;
  }
  return full;
}

// "re:Model\.layers\.5\.mlp\.(up|down)_proj" -> "re:model.layers.5.mlp.up_proj|down_proj".
std::string plain_name(std::string_view name) {
  std::string plain = lower_case(name);
  std::erase(plain, '\\');
  return with_alternatives_in_full(without_negative_lookaround(plain));
}

// The numbers in "layers.5." and "layers.(5|6).". None where a name speaks of all layers.
std::vector<int64_t> layer_numbers(std::string_view name) {
  constexpr std::string_view before = "layers.", digits = "0123456789";
  const size_t at = name.find(before);
  if (at == name.npos) return {};
  std::string_view said = name.substr(at + before.size());
  if (said.starts_with('(')) {
    said.remove_prefix(said.starts_with("(?:") ? 3 : 1);
    said = said.substr(0, said.find(')'));
  } else {
    said = said.substr(0, said.find_first_not_of(digits));
  }
  std::vector<int64_t> numbers;
  for (const std::string_view one : split(said, "|")) {
    const std::optional<int64_t> number = parse_integer(one);
    if (!number || one.find_first_not_of(digits) != one.npos) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

// Modules beside the layers that are modelled: encoders of images and sound, and draft layers, which some publishers
// number behind the last layer.
bool is_beside_the_layers(std::string_view name, const Model& model) {
  const std::vector<int64_t> layers = layer_numbers(name);
  const bool are_behind = !layers.empty() && std::all_of(layers.begin(), layers.end(), [&](int64_t layer) {
    return layer >= std::ssize(model.layers);
  });
  return are_behind || contains_any(name, {"visual", "vision", "audio", "multi_modal_projector", "mtp", "nextn"});
}

bool has_mixer(const Layer& layer) {
  return !std::holds_alternative<std::monostate>(layer.mixer);
}
bool has_feed_forward(const Layer& layer) {
  return !std::holds_alternative<std::monostate>(layer.feed_forward);
}
bool has_experts(const Layer& layer) {
  return std::holds_alternative<Moe>(layer.feed_forward);
}
// Beside attention and routed experts.
bool has_other_linear(const Layer& layer) {
  const auto* moe = std::get_if<Moe>(&layer.feed_forward);
  return std::holds_alternative<Mlp>(layer.feed_forward) ||
         (moe != nullptr && (moe->shared_width > 0 || moe->dense_width > 0 || moe->latent_width > 0));
}

using HasPart = bool (*)(const Layer&);

int64_t layers_with(HasPart has_part, const Model& model) {
  return std::count_if(model.layers.begin(), model.layers.end(), has_part);
}

struct LeftAlone {
  bool attention = false;
  bool shared_experts = false;
};

// A block is left alone where the list names it ("model.layers.5.self_attn*") or its queries' projection; not where it
// names a norm or another single projection (o_proj, kv_b_proj) of it.
bool names_block(std::string_view name, std::string_view block) {
  const size_t at = name.find(block);
  if (at == name.npos) return false;
  const std::string_view rest = name.substr(at + block.size());
  if (rest.find_first_not_of(".*s") == rest.npos) return true;
  return rest.find("q_proj") != rest.npos || rest.find("qkv") != rest.npos || rest.find("q_b_proj") != rest.npos;
}

// The gate that weighs the shared expert is always in the model's dtype.
bool names_shared_expert(std::string_view name) {
  return contains(name, "shared_expert") && !contains(name, "shared_expert_gate");
}

// The parts a quantizer left in the model's dtype, in at least half of the layers.
LeftAlone left_alone(const JsonView& quantization, const Model& model) {
  NamedLayers attention, shared_experts;
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"}) {
    const auto list = quantization.find(key);
    if (!list || !list->is(Json::Kind::array)) continue;
    for (const JsonView& item : list->items()) {
      if (!item.is(Json::Kind::string)) continue;
      const std::string name = plain_name(item.string());
      if (is_beside_the_layers(name, model)) continue;
      if (names_block(name, "attn")) attention.add(layer_numbers(name));
      if (names_shared_expert(name)) shared_experts.add(layer_numbers(name));
    }
  }
  return {.attention = attention.are_most_of(layers_with(has_mixer, model)),
          .shared_experts = shared_experts.are_most_of(layers_with(has_experts, model))};
}

// How weights are stored and multiplied.
struct Format {
  Scheme scheme = Scheme::bf16;
  std::optional<double> int4_bytes = {};  // of a weight, where scheme is int4_wo and its groups are not of 128
  bool operator==(const Format&) const = default;
};

// By part; nothing = as the dtype.
struct Quantization {
  std::optional<Format> linear = {}, experts = {}, attention = {};

  static Quantization of_all(const std::optional<Format>& format) { return {format, format, format}; }
};

// Where the shared experts are left alone too, only routed experts are quantized; dense layers are few then.
Quantization without_parts_left_alone(Quantization found, const JsonView& quantization, const Model& model,
                                      ConfigReader& config) {
  const LeftAlone left = left_alone(quantization, model);
  if (!found.attention || !left.attention) return found;
  if (left.shared_experts) {
    config.note(
        "the quantizer left attention and shared experts in the model's dtype: only routed experts are taken "
        "as quantized");
    return {.experts = found.experts};
  }
  config.note("the quantizer left attention in the model's dtype");
  found.attention.reset();
  return found;
}

// int4_wo stands for groups of 128 weights with a 16-bit scale and a 4-bit zero point.
Format weight_only(int64_t bits, int64_t group, bool has_zero_point) {
  if (bits == 8) return {Scheme::int8_wo};
  constexpr int64_t usual_group = 128;
  if (group <= 0 || group == usual_group) return {Scheme::int4_wo};
  return {Scheme::int4_wo, 0.5 + (has_zero_point ? 2.5 : 2.0) / static_cast<double>(group)};
}

// NVFP4 weights that are multiplied in 16 bits: Marlin's kernels, as those of int4_wo.
Format nvfp4_weights_alone(ConfigReader& config) {
  const std::string note = "only the weights are in NVFP4, so they are multiplied in 16 bits, at the speed of int4_wo";
  if (std::find(config.notes().begin(), config.notes().end(), note) == config.notes().end()) config.note(note);
  return {Scheme::int4_wo, facts(Scheme::nvfp4).weight_bytes};
}

int64_t four_or_eight(const JsonView& bits) {
  const int64_t value = bits.integer({.least = 1, .most = 64});
  if (value != 4 && value != 8) bits.fail("4 or 8");
  return value;
}

int64_t group_size_of(const JsonView& weights) {
  const auto size = weights.find("group_size");
  return size ? size->integer({.least = -1, .most = 1'000'000}) : 0;
}

// GPTQ and AWQ store a zero point beside each scale.
Format group_quantized(const JsonView& quantization) {
  const auto bits = quantization.find("bits");
  return weight_only(bits ? four_or_eight(*bits) : 4, group_size_of(quantization), true);
}

// Of one of compressed-tensors' config groups, which says how weights and, perhaps, inputs are stored.
Format format_of_group(const JsonView& config_group, ConfigReader& config) {
  const JsonView weights = config_group.at("weights");
  const int64_t bits = four_or_eight(weights.at("num_bits"));
  const auto type = weights.find("type");
  const bool is_float = type && type->string() == "float";
  const int64_t group = group_size_of(weights);
  const bool quantizes_inputs = config_group.has("input_activations");
  if (is_float && bits == 8) {
    const auto strategy = weights.find("strategy");
    return {strategy && strategy->string() == "block" ? Scheme::fp8_block : Scheme::fp8};
  }
  constexpr int64_t mx_group = 32;
  if (is_float && group == mx_group) return {quantizes_inputs ? Scheme::mxfp4_mxfp8 : Scheme::mxfp4_wo};
  if (is_float) return quantizes_inputs ? Format{Scheme::nvfp4} : nvfp4_weights_alone(config);
  if (bits == 8 && quantizes_inputs) return {Scheme::int8};
  const auto symmetric = weights.find("symmetric");
  return weight_only(bits, group, symmetric && !symmetric->boolean());
}

// The words by which names mention one matrix.
using Matrix = std::vector<std::string_view>;

// The formats of one part's matrices, layer by layer. Of several names for a matrix the first counts, as in vLLM; a
// name that mentions no matrix stands for all of them. All experts of a layer count as one, with the first one's
// format.
class PartVotes {
 public:
  PartVotes(const Model& model, HasPart has_part, std::vector<Matrix> matrices) : matrices_(std::move(matrices)) {
    for (const Layer& layer : model.layers) layers_.emplace_back(has_part(layer) ? matrices_.size() : 0);
  }

  void add(std::string_view name, const Format& format) {
    std::vector<bool> is_mentioned;
    for (const Matrix& words : matrices_) {
      is_mentioned.push_back(
          std::any_of(words.begin(), words.end(), [&](std::string_view word) { return contains(name, word); }));
    }
    if (std::find(is_mentioned.begin(), is_mentioned.end(), true) == is_mentioned.end()) {
      is_mentioned.assign(matrices_.size(), true);
    }
    const auto add_to = [&](MatrixFormats& layer) {
      for (size_t matrix = 0; matrix < layer.size(); ++matrix) {
        if (is_mentioned[matrix] && !layer[matrix]) layer[matrix] = format;
      }
    };
    const std::vector<int64_t> numbers = layer_numbers(name);
    for (const int64_t number : numbers) {
      if (number < std::ssize(layers_)) add_to(layers_[static_cast<size_t>(number)]);
    }
    if (numbers.empty()) std::for_each(layers_.begin(), layers_.end(), add_to);
  }

  // Of most matrices; those that no name mentions are in the format `rest`. Nothing where there is no such format and
  // the names leave most of the layers with such a part in the model's dtype.
  std::optional<Format> winner(const std::optional<Format>& rest) const {
    Votes votes;
    int64_t layers = 0, named_layers = 0, unnamed_matrices = 0;
    for (const MatrixFormats& layer : layers_) {
      const int64_t unnamed = std::count(layer.begin(), layer.end(), std::nullopt);
      layers += layer.empty() ? 0 : 1;
      named_layers += unnamed < std::ssize(layer) ? 1 : 0;
      unnamed_matrices += unnamed;
      for (const std::optional<Format>& format : layer) {
        if (format) count(votes, *format, 1);
      }
    }
    if (rest) {
      count(votes, *rest, unnamed_matrices);
    } else if (2 * named_layers < layers) {
      return std::nullopt;
    }
    const auto most =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == votes.end() ? rest : most->first;
  }

  bool is_empty() const {
    return std::all_of(layers_.begin(), layers_.end(), [](const MatrixFormats& layer) {
      return std::count(layer.begin(), layer.end(), std::nullopt) == std::ssize(layer);
    });
  }

 private:
  using MatrixFormats = std::vector<std::optional<Format>>;  // empty for a layer without the part
  using Votes = std::vector<std::pair<Format, int64_t>>;

  static void count(Votes& votes, const Format& format, int64_t matrices) {
    const auto known = std::find_if(votes.begin(), votes.end(), [&](const auto& one) { return one.first == format; });
    if (known != votes.end()) {
      known->second += matrices;
    } else {
      votes.emplace_back(format, matrices);
    }
  }

  std::vector<Matrix> matrices_;
  std::vector<MatrixFormats> layers_;
};

// Latent projections stand beside MLPs without a gate (Nemotron-H).
std::vector<Matrix> mlp_matrices() {
  return {{"gate_proj", "gate_up_proj", "latent_proj"}, {"up_proj"}, {"down_proj"}};
}
std::vector<Matrix> attention_matrices() {
  return {{"q_proj", "q_a_proj", "q_b_proj", "qkv", "in_proj"},
          {"k_proj", "kv_proj", "kv_a_proj", "kv_b_proj", "qkv", "in_proj"},
          {"v_proj", "kv_a_proj", "kv_b_proj", "qkv", "in_proj"},
          {"o_proj", "out_proj"}};
}

// Sorts modules, which are named in full or by a regex, into the parts of the model.
class PartFormats {
 public:
  // Where all feed-forwards are of routed experts, names of MLPs speak for those.
  explicit PartFormats(const Model& model)
      : model_(model),
        linear_(model, layers_with(has_other_linear, model) > 0 ? has_other_linear : has_feed_forward, mlp_matrices()),
        experts_(model, has_experts, mlp_matrices()),
        attention_(model, has_mixer, attention_matrices()) {}

  void add(std::string_view module, const Format& format) {
    if (module == "Linear") {  // the class of all modules that no other name covers
      if (!rest_) rest_ = format;
      return;
    }
    const std::string name = plain_name(module);
    // The latter are small, and would stand for all matrices of their layer.
    if (is_beside_the_layers(name, model_) || contains_any(name, {"indexer", "shared_expert_gate"})) return;
    const bool is_shared = contains(name, "shared_expert");
    const bool is_routed = contains(name, "expert") && !is_shared;
    if (is_routed) experts_.add(name, format);
    if (contains_any(name, {"attn", "attention", "q_proj", "k_proj", "v_proj", "o_proj", "qkv", "q_a_proj", "q_b_proj",
                            "kv_a_proj", "kv_b_proj", "in_proj", "out_proj"})) {
      attention_.add(name, format);
    }
    const bool is_mlp = contains_any(name, {"mlp", "feed_forward", "gate_proj", "up_proj", "down_proj", "latent_proj"});
    if (is_shared || (is_mlp && !is_routed)) linear_.add(name, format);
  }

  // Nothing where no name is known. A part that no name covers is in the model's dtype, but routed experts are in the
  // format of other MLPs.
  std::optional<Quantization> by_part() const {
    if (!rest_ && linear_.is_empty() && attention_.is_empty() && experts_.is_empty()) return std::nullopt;
    Quantization found{.linear = linear_.winner(rest_), .attention = attention_.winner(rest_)};
    found.experts = experts_.is_empty() ? found.linear : experts_.winner(rest_);
    if (layers_with(has_other_linear, model_) == 0) found.linear = found.attention;  // no weight is stored so
    return found;
  }

 private:
  const Model& model_;
  std::optional<Format> rest_;
  PartVotes linear_, experts_, attention_;
};

void note_parts(const Quantization& found, const Model& model, ConfigReader& config) {
  const auto name = [&](const std::optional<Format>& format) {
    return facts(format ? format->scheme : plain_scheme(model.dtype)).name;
  };
  std::string text = fmt::format(
      "the checkpoint mixes number formats; this answer takes that of most matrices of each part: attention in {}",
      name(found.attention));
  if (model.has_experts()) text += fmt::format(", routed experts in {}", name(found.experts));
  if (layers_with(has_other_linear, model) > 0) text += fmt::format(", other linear layers in {}", name(found.linear));
  config.note(text);
}

// One group speaks for all linear layers; of several, each speaks for the modules it names.
Quantization by_config_groups(const std::vector<std::pair<std::string, JsonView>>& groups, const Model& model,
                              ConfigReader& config) {
  PartFormats parts(model);
  std::vector<Format> formats;
  for (const auto& [name, group] : groups) {
    if (groups.size() > 1 && !group.has("weights")) continue;  // of a cache or of inputs alone
    const Format format = format_of_group(group, config);
    formats.push_back(format);
    const auto targets = group.find("targets");
    if (!targets || !targets->is(Json::Kind::array)) continue;
    for (const JsonView& target : targets->items()) {
      if (target.is(Json::Kind::string)) parts.add(target.string(), format);
    }
  }
  if (formats.empty()) formats.push_back(format_of_group(groups.front().second, config));
  const bool are_equal =
      std::all_of(formats.begin(), formats.end(), [&](const Format& one) { return one == formats.front(); });
  const std::optional<Quantization> found = are_equal ? std::nullopt : parts.by_part();
  if (!found) return Quantization::of_all(formats.front());
  note_parts(*found, model, config);
  return *found;
}

Quantization compressed_tensors(const JsonView& quantization, const Model& model, ConfigReader& config) {
  const auto groups = quantization.find("config_groups");
  if (!groups || groups->members().empty()) {
    config.note(
        "quantization_config names compressed-tensors without config_groups: weights are taken as stored in the "
        "model's dtype; pass {quantization} if they are not");
    return {};
  }
  return by_config_groups(groups->members(), model, config);
}

std::optional<Format> modelopt_format(const JsonView& algorithm, ConfigReader& config) {
  const std::string name = algorithm.string();
  if (name == "FP8" || name == "FP8_PER_CHANNEL_PER_TOKEN" || name == "FP8_PB_WO") return Format{Scheme::fp8};
  if (name == "MXFP8") return Format{Scheme::fp8_block};  // its scales stand for 32 values each
  if (name == "NVFP4" || name == "NVFP4_AWQ") return Format{Scheme::nvfp4};
  if (name == "W4A16_NVFP4") return nvfp4_weights_alone(config);
  if (name == "W4A16_AWQ" || name == "W4A8_AWQ" || name == "W4A16") return Format{Scheme::int4_wo};
  if (name == "W8A16") return Format{Scheme::int8_wo};
  if (name == "INT8_SQ" || name == "W8A8_SQ_PER_CHANNEL") return Format{Scheme::int8};
  return std::nullopt;
}

// MIXED_PRECISION: a format for each module, {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}, ...}, or groups of
// them as compressed-tensors has.
Quantization modelopt_mixed(const JsonView& quantization, const Model& model, ConfigReader& config) {
  if (const auto layers = quantization.find("quantized_layers"); layers && layers->is(Json::Kind::object)) {
    // Some exports nest the list in itself.
    const auto nested = layers->find("quantized_layers");
    PartFormats parts(model);
    for (const auto& [module, said] : (nested ? *nested : *layers).members()) {
      if (!said.is(Json::Kind::object) || !said.has("quant_algo")) continue;
      if (const auto format = modelopt_format(said.at("quant_algo"), config)) parts.add(module, *format);
    }
    if (const auto found = parts.by_part()) {
      note_parts(*found, model, config);
      return *found;
    }
  }
  if (const auto groups = quantization.find("config_groups"); groups && !groups->members().empty()) {
    return by_config_groups(groups->members(), model, config);
  }
  config.note(
      "modelopt MIXED_PRECISION without quantized_layers does not say how each layer is stored: weights are taken as "
      "stored in the model's dtype");
  return {};
}

Quantization modelopt(const JsonView& quantization, const Model& model, ConfigReader& config) {
  const auto algorithm = quantization.find("quant_algo");
  if (!algorithm) {
    config.note(
        "quantization_config names modelopt without quant_algo: weights are taken as stored in the model's dtype");
    return {};
  }
  if (algorithm->string() == "MIXED_PRECISION") return modelopt_mixed(quantization, model, config);
  const std::optional<Format> format = modelopt_format(*algorithm, config);
  if (!format) {
    algorithm->fail("FP8, MXFP8, NVFP4, W4A16_NVFP4, W4A16_AWQ, W4A8_AWQ, W8A16, INT8_SQ or MIXED_PRECISION");
  }
  return Quantization::of_all(format);
}

Quantization read_quantization(const JsonView& quantization, const Model& model, ConfigReader& config) {
  const JsonView method_view = quantization.at("quant_method");
  const std::string method = method_view.string();
  Quantization found;
  if (method == "fp8") {
    found = Quantization::of_all(Format{quantization.has("weight_block_size") ? Scheme::fp8_block : Scheme::fp8});
  } else if (method == "fbgemm_fp8") {
    found = Quantization::of_all(Format{Scheme::fp8});
  } else if (method == "mxfp4") {
    return {.experts = Format{Scheme::mxfp4_wo}};
  } else if (method == "mxfp8") {
    found = Quantization::of_all(Format{Scheme::fp8_block});  // its scales stand for 32 values each
  } else if (method == "gptq" || method == "awq" || method == "auto-round") {
    found = Quantization::of_all(group_quantized(quantization));
  } else if (method == "bitsandbytes") {
    const auto eight = quantization.find("load_in_8bit");
    found = Quantization::of_all(Format{eight && eight->boolean() ? Scheme::int8_wo : Scheme::int4_wo});
  } else if (method == "compressed-tensors") {
    found = compressed_tensors(quantization, model, config);
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    found = modelopt(quantization, model, config);
  } else {
    const std::vector<std::string> known = {"fp8", "fbgemm_fp8", "mxfp4",    "mxfp8",        "gptq",
                                            "awq", "auto-round", "modelopt", "bitsandbytes", "compressed-tensors"};
    method_view.fail(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(method, known).value_or(""));
  }
  return without_parts_left_alone(found, quantization, model, config);
}

// hf_quant_config.json: {"quantization": {"quant_algo": "FP8", ...}}.
Quantization read_quantization_beside(const JsonView& document, const Model& model, ConfigReader& config) {
  const JsonView quantization = document.at("quantization");
  return without_parts_left_alone(modelopt(quantization, model, config), quantization, model, config);
}

// vLLM, SGLang and TensorRT-LLM keep the cache as a checkpoint asks unless they are told otherwise. modelopt names an
// algorithm; compressed-tensors describes the numbers.
bool asks_for_fp8_cache(const JsonView& quantization) {
  if (!quantization.is(Json::Kind::object)) return false;
  if (const auto inner = quantization.find("quantization"); inner && asks_for_fp8_cache(*inner)) return true;
  const auto algorithm = quantization.find("kv_cache_quant_algo");
  if (algorithm && algorithm->is(Json::Kind::string) && lower_case(algorithm->string()) == "fp8") return true;
  const auto scheme = quantization.find("kv_cache_scheme");
  if (!scheme || !scheme->is(Json::Kind::object)) return false;
  const auto bits = scheme->find("num_bits"), type = scheme->find("type");
  return bits && bits->is(Json::Kind::integer) && bits->integer() == 8 && type && type->is(Json::Kind::string) &&
         type->string() == "float";
}

}  // namespace

void read_number_formats(ConfigReader& config, const std::optional<JsonView>& quantization_beside, Model& model) {
  model.dtype = read_dtype(config);
  Quantization found;
  const auto inside = find_outside_in(config, "quantization_config");
  if (inside) {
    found = read_quantization(*inside, model, config);
  } else if (quantization_beside) {
    found = read_quantization_beside(*quantization_beside, model, config);
  }
  const Format plain{plain_scheme(model.dtype)};
  const Format linear = found.linear.value_or(plain), experts = found.experts.value_or(plain),
               attention = found.attention.value_or(plain);
  model.scheme = linear.scheme;
  model.expert_scheme = experts.scheme;
  if (attention.scheme != model.scheme) model.attention_scheme = attention.scheme;
  for (const Format& format : {experts, linear, attention}) {
    if (format.scheme == Scheme::int4_wo) {  // one size for all parts
      model.int4_bytes = format.int4_bytes;
      break;
    }
  }
  if ((inside && asks_for_fp8_cache(*inside)) || (quantization_beside && asks_for_fp8_cache(*quantization_beside))) {
    model.cache_dtype = DType::fp8;
    config.note("the checkpoint asks for an fp8 KV cache; {kv_cache_dtype} bf16 overrides it");
  }
  // DeepSeek-V4 keeps routed experts in MXFP4 beside fp8 linear layers, and multiplies them by fp8 activations.
  if (const auto expert_dtype = config.text().find("expert_dtype")) {
    if (expert_dtype->string() == "fp4") {
      model.expert_scheme = Scheme::mxfp4_mxfp8;
    } else if (expert_dtype->string() != "fp8") {
      expert_dtype->fail("fp4 or fp8");
    }
  }
}

}  // namespace foretoken
