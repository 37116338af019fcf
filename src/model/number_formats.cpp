#include "model/number_formats.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

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

// The parts a quantizer left in the model's dtype.
LeftAlone left_alone(const JsonView& quantization) {
  LeftAlone left;
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"}) {
    const auto list = quantization.find(key);
    if (!list || !list->is(Json::Kind::array)) continue;
    for (const JsonView& item : list->items()) {
      if (!item.is(Json::Kind::string)) continue;
      const std::string name = item.string();
      left.attention = left.attention || names_block(name, "attn");
      left.shared_experts = left.shared_experts || name.find("shared_expert") != name.npos;
    }
  }
  return left;
}

struct Quantization {
  std::optional<Scheme> linear;  // nothing = as the dtype
  std::optional<Scheme> experts;
  bool plain_attention = false;
};

// Where the shared experts are left alone too, only routed experts are quantized; dense layers are few then.
Quantization of_parts(std::optional<Scheme> scheme, const JsonView& quantization, ConfigReader& config) {
  const LeftAlone left = left_alone(quantization);
  if (!scheme || !left.attention) return {.linear = scheme, .experts = scheme};
  if (left.shared_experts) {
    config.note(
        "the quantizer left attention and shared experts in the model's dtype: only routed experts are taken "
        "as quantized");
    return {.experts = scheme};
  }
  config.note("the quantizer left attention in the model's dtype");
  return {.linear = scheme, .experts = scheme, .plain_attention = true};
}

Scheme weight_only(int64_t bits) {
  return bits == 8 ? Scheme::int8_wo : Scheme::int4_wo;
}

int64_t four_or_eight(const JsonView& bits) {
  const int64_t value = bits.integer({.least = 1, .most = 64});
  if (value != 4 && value != 8) bits.fail("4 or 8");
  return value;
}

// compressed-tensors: each config group says how weights and, perhaps, inputs are stored.
std::optional<Scheme> compressed_tensors_scheme(const JsonView& quantization, ConfigReader& config) {
  const auto groups = quantization.find("config_groups");
  if (!groups || groups->members().empty()) {
    config.note(
        "quantization_config names compressed-tensors without config_groups: weights are taken as stored in the "
        "model's dtype; pass {quantization} if they are not");
    return std::nullopt;
  }
  const JsonView weights = groups->members().front().second.at("weights");
  const int64_t bits = four_or_eight(weights.at("num_bits"));
  const auto type = weights.find("type");
  const bool is_float = type && type->string() == "float";
  const auto group_size = weights.find("group_size");
  const int64_t group = group_size ? group_size->integer({.least = -1, .most = 1'000'000}) : 0;
  const bool quantizes_inputs = groups->members().front().second.has("input_activations");
  if (is_float && bits == 8) {
    const auto strategy = weights.find("strategy");
    return strategy && strategy->string() == "block" ? Scheme::fp8_block : Scheme::fp8;
  }
  if (is_float) return group == 32 ? (quantizes_inputs ? Scheme::mxfp4_mxfp8 : Scheme::mxfp4_wo) : Scheme::nvfp4;
  if (bits == 8 && quantizes_inputs) return Scheme::int8;
  return weight_only(bits);
}

std::optional<Scheme> modelopt_scheme(const JsonView& quantization, ConfigReader& config) {
  const auto algorithm = quantization.find("quant_algo");
  if (!algorithm) {
    config.note(
        "quantization_config names modelopt without quant_algo: weights are taken as stored in the model's dtype");
    return std::nullopt;
  }
  const std::string name = algorithm->string();
  if (name == "FP8" || name == "FP8_PER_CHANNEL_PER_TOKEN" || name == "FP8_PB_WO") return Scheme::fp8;
  if (name == "NVFP4" || name == "NVFP4_AWQ") return Scheme::nvfp4;
  if (name == "W4A16_AWQ" || name == "W4A8_AWQ" || name == "W4A16") return Scheme::int4_wo;
  if (name == "W8A16") return Scheme::int8_wo;
  if (name == "INT8_SQ" || name == "W8A8_SQ_PER_CHANNEL") return Scheme::int8;
  if (name == "MIXED_PRECISION") {
    config.note(
        "modelopt MIXED_PRECISION stores each layer differently: weights are taken as stored in the model's dtype");
    return std::nullopt;
  }
  algorithm->fail("FP8, NVFP4, W4A16_AWQ, W4A8_AWQ, W8A16, INT8_SQ or MIXED_PRECISION");
}

Quantization read_quantization(const JsonView& quantization, ConfigReader& config) {
  const JsonView method_view = quantization.at("quant_method");
  const std::string method = method_view.string();
  std::optional<Scheme> scheme;
  if (method == "fp8") {
    scheme = quantization.has("weight_block_size") ? Scheme::fp8_block : Scheme::fp8;
  } else if (method == "fbgemm_fp8") {
    scheme = Scheme::fp8;
  } else if (method == "mxfp4") {
    return {.experts = Scheme::mxfp4_wo};
  } else if (method == "mxfp8") {
    scheme = Scheme::fp8_block;  // its scales stand for 32 values each
  } else if (method == "gptq" || method == "awq" || method == "auto-round") {
    const auto bits = quantization.find("bits");
    scheme = bits ? weight_only(four_or_eight(*bits)) : Scheme::int4_wo;
  } else if (method == "bitsandbytes") {
    const auto eight = quantization.find("load_in_8bit");
    scheme = eight && eight->boolean() ? Scheme::int8_wo : Scheme::int4_wo;
  } else if (method == "compressed-tensors") {
    scheme = compressed_tensors_scheme(quantization, config);
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    scheme = modelopt_scheme(quantization, config);
  } else {
    const std::vector<std::string> known = {"fp8", "fbgemm_fp8", "mxfp4",    "mxfp8",        "gptq",
                                            "awq", "auto-round", "modelopt", "bitsandbytes", "compressed-tensors"};
    method_view.fail(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(method, known).value_or(""));
  }
  return of_parts(scheme, quantization, config);
}

// hf_quant_config.json: {"quantization": {"quant_algo": "FP8", ...}}.
Quantization read_quantization_beside(const JsonView& document, ConfigReader& config) {
  const JsonView quantization = document.at("quantization");
  return of_parts(modelopt_scheme(quantization, config), quantization, config);
}

}  // namespace

void read_number_formats(ConfigReader& config, const std::optional<JsonView>& quantization_beside, Model& model) {
  model.dtype = read_dtype(config);
  Quantization found;
  if (const auto inside = find_outside_in(config, "quantization_config")) {
    found = read_quantization(*inside, config);
  } else if (quantization_beside) {
    found = read_quantization_beside(*quantization_beside, config);
  }
  const Scheme plain = plain_scheme(model.dtype);
  model.scheme = found.linear.value_or(plain);
  model.expert_scheme = found.experts.value_or(plain);
  if (found.plain_attention) model.attention_scheme = plain;
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
