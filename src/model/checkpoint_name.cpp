#include "model/checkpoint_name.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

enum class Word {
  fp4,        // NVFP4
  mxfp4,      // weights alone
  fp8,        // weights and activations
  int8,       // weights and activations, unless a weight-only quantizer is named too
  w8a8,       // int8 or, beside FP8, fp8
  w8a16,      // weights alone
  four,       // four-bit weights alone
  quantizer,  // of weights alone: four bits unless eight are named
  eight,      // bits of a weight-only quantizer
  bf16,
  fp16,
  fp32,
  w4a8,     // four-bit weights, eight-bit activations
  mxfp8,    // fp8 with a scale for each 32 values
  foreign,  // a format without a scheme here
  block,
  cache,
  other  // says nothing of the format, but stands between or behind words that do
};

struct KnownWord {
  std::string_view text;
  Word word;
};

// As publishers write them (Qwen, NVIDIA, Red Hat, unsloth, TheBloke, ...), in lower case.
constexpr KnownWord words[] = {
    {"fp8", Word::fp8},       {"float8", Word::fp8},     {"nvfp4", Word::fp4},     {"fp4", Word::fp4},
    {"mxfp4", Word::mxfp4},   {"int8", Word::int8},      {"w8a8", Word::w8a8},     {"w8a16", Word::w8a16},
    {"w4a16", Word::four},    {"int4", Word::four},      {"4bit", Word::four},     {"nf4", Word::four},
    {"awq", Word::quantizer}, {"gptq", Word::quantizer}, {"bnb", Word::quantizer}, {"autoround", Word::quantizer},
    {"8bit", Word::eight},    {"bf16", Word::bf16},      {"bfloat16", Word::bf16}, {"fp16", Word::fp16},
    {"float16", Word::fp16},  {"fp32", Word::fp32},      {"gguf", Word::foreign},  {"exl2", Word::foreign},
    {"exl3", Word::foreign},  {"hqq", Word::foreign},    {"aqlm", Word::foreign},  {"mxfp8", Word::mxfp8},
    {"mxfp6", Word::foreign}, {"w4a8", Word::w4a8},      {"w4afp8", Word::w4a8},   {"w4a4", Word::foreign},
    {"int2", Word::foreign},  {"int3", Word::foreign},   {"2bit", Word::foreign},  {"3bit", Word::foreign},
    {"5bit", Word::foreign},  {"6bit", Word::foreign},   {"block", Word::block},   {"blockwise", Word::block},
    {"kv", Word::cache},      {"dynamic", Word::other},  {"static", Word::other},  {"quantized", Word::other},
    {"quant", Word::other},   {"unsloth", Word::other},  {"marlin", Word::other},  {"preview", Word::other},
    {"channel", Word::other}, {"tensor", Word::other},   {"sym", Word::other},     {"asym", Word::other},
    {"g128", Word::other},    {"128g", Word::other},     {"v2", Word::other},      {"v3", Word::other},
    {"qat", Word::other},     {"mlx", Word::other},      {"per", Word::other}};

constexpr std::string_view separators = "-_.";

// GGUF files: Q4_K_M, IQ3_XS, ...
bool is_gguf_word(std::string_view word) {
  if (word.starts_with('i')) word.remove_prefix(1);
  return word.size() == 2 && word[0] == 'q' && word[1] >= '1' && word[1] <= '8';
}

std::optional<Word> known_word(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const KnownWord& one : words) {
    if (one.text == lower) return one.word;
  }
  return std::nullopt;
}

class Words {
 public:
  void add(Word word) { said_.push_back(word); }
  bool say(Word word) const { return std::find(said_.begin(), said_.end(), word) != said_.end(); }
  bool state_a_format() const {
    return std::any_of(said_.begin(), said_.end(),
                       [](Word word) { return word != Word::other && word != Word::block && word != Word::cache; });
  }

  std::optional<Scheme> scheme() const {
    if (say(Word::foreign)) return std::nullopt;
    if (say(Word::fp4)) return Scheme::nvfp4;
    if (say(Word::mxfp4)) return Scheme::mxfp4_wo;
    if (say(Word::w4a8)) return Scheme::int4_wo;
    if (say(Word::mxfp8)) return Scheme::fp8_block;
    if (say(Word::fp8)) return say(Word::block) ? Scheme::fp8_block : Scheme::fp8;
    if (say(Word::w8a8)) return Scheme::int8;
    if (say(Word::w8a16) || say(Word::eight)) return Scheme::int8_wo;
    if (say(Word::int8)) return say(Word::quantizer) ? Scheme::int8_wo : Scheme::int8;
    if (say(Word::four) || say(Word::quantizer)) return Scheme::int4_wo;
    if (say(Word::fp32)) return Scheme::fp32;
    return say(Word::fp16) ? Scheme::fp16 : Scheme::bf16;
  }

  std::string_view caveat() const {
    if (say(Word::w4a8)) return "; its 8-bit activations are not simulated, so multiplies are priced in 16 bits";
    if (say(Word::mxfp8)) return "; its scales stand for 32 values each, which costs slightly more";
    return {};
  }

 private:
  std::vector<Word> said_;
};

// GGUF's own names stand anywhere behind the model's.
std::optional<size_t> gguf_start(std::string_view text) {
  size_t begin = text.find_first_of(separators);
  while (begin != text.npos) {
    const size_t end = std::min(text.find_first_of(separators, begin + 1), text.size());
    if (is_gguf_word(lower_case(text.substr(begin + 1, end - begin - 1)))) return begin;
    begin = text.find_first_of(separators, begin + 1);
  }
  return std::nullopt;
}

// Publishers whose own fp8 checkpoints have a scale for each block of 128 x 128 weights; those of others, and of all
// who quantize their models, have one for each tensor or channel. So have those of GLM-4.5 to 4.7 (compressed-tensors;
// sgl-project/sglang, pull request 21403), while GLM-5's are as DeepSeek's.
bool publishes_blocks(std::string_view publisher, std::string_view family) {
  if (family == "glm4_moe") return false;
  constexpr std::string_view all[] = {"Qwen",    "deepseek-ai", "moonshotai", "MiniMaxAI",
                                      "zai-org", "XiaomiMiMo",  "inclusionAI"};
  return std::find(std::begin(all), std::end(all), publisher) != std::end(all);
}

// Publishers whose "-fp4" is MXFP4 (SGLang's cookbook: Ling-3.0-flash-fp4); NVIDIA's is NVFP4.
bool publishes_mxfp4(std::string_view publisher) {
  return publisher == "inclusionAI";
}

// What NVIDIA's NVFP4 checkpoints leave in the model's dtype (exclude_modules of their hf_quant_config.json), by the
// start of the model's name.
struct KeptByNvidia {
  std::string_view start;
  bool attention, shared_experts;
};
constexpr KeptByNvidia kept_by_nvidia[] = {
    {"GLM-5.1", true, true}, {"GLM-5.2", true, true},     {"Kimi-K2.6", true, true}, {"Kimi-K2.7", true, true},
    {"Qwen3.5", true, true}, {"MiniMax-M2", true, false}, {"Gemma-4", true, false}};

KeptByNvidia kept_of(const Model& model, const CheckpointName& name) {
  // Those of DeepSeek's models list self_attn, whoever made them.
  KeptByNvidia kept{.start = {}, .attention = model.has_latent_attention(), .shared_experts = false};
  if (!name.organization.empty() && !equal_ignoring_case(name.organization, "nvidia")) return kept;
  for (const KeptByNvidia& known : kept_by_nvidia) {
    if (equal_ignoring_case(name.model.substr(0, known.start.size()), known.start)) kept = known;
  }
  return kept;
}

[[noreturn]] void refuse_format(const CheckpointName& name, std::string_view why) {
  throw InputError({.source = "model",
                    .value = fmt::format("{} in the name", printable(name.format->text)),
                    .expected = fmt::format("a format that is simulated; {}. Give the name without the format, {}, "
                                            "and {{quantization}} with one of {}",
                                            why, printable(name.model), fmt::join(scheme_names(), ", "))});
}

// "NVFP44": near a word that states a format.
bool is_misspelled_format(const std::string& lower) {
  if (lower.find_first_of("0123456789") == lower.npos) return false;
  std::vector<std::string> formats;
  for (const KnownWord& one : words) {
    if (one.word != Word::other) formats.emplace_back(one.text);
  }
  return nearest_name(lower, formats).has_value();
}

}  // namespace

CheckpointName parse_checkpoint_name(std::string_view name) {
  CheckpointName result;
  if (const size_t slash = name.rfind('/'); slash != name.npos) {
    result.organization = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  result.model = name;
  if (const auto start = gguf_start(name)) {
    result.model = name.substr(0, *start);
    result.format = NameFormat{.text = std::string(name.substr(*start + 1)), .scheme = std::nullopt};
    return result;
  }
  Words said;
  size_t end = name.size();
  while (true) {
    const size_t separator = name.substr(0, end).find_last_of(separators);
    if (separator == name.npos || separator == 0) break;
    const std::optional<Word> word = known_word(name.substr(separator + 1, end - separator - 1));
    if (!word) break;
    said.add(*word);
    end = separator;
  }
  if (!said.state_a_format()) return result;
  result.model = name.substr(0, end);
  result.format = NameFormat{.text = std::string(name.substr(end + 1)),
                             .scheme = said.scheme(),
                             .caveat = said.caveat(),
                             .states_blocks = said.say(Word::block),
                             .states_fp8_cache = said.say(Word::cache) && said.say(Word::fp8)};
  return result;
}

std::string comparable_name(std::string_view model, bool dates) {
  constexpr std::string_view no_shape[] = {"instruct", "chat", "it", "pt", "base", "hf", "thinking", "meta"};
  const std::string lower = lower_case(model);
  std::vector<std::string_view> kept;
  for (std::string_view word : split_words(lower, "-")) {
    const bool is_date = word.size() == 4 && parse_integer(word).has_value();
    if (is_date && !dates) continue;
    if (std::find(std::begin(no_shape), std::end(no_shape), word) == std::end(no_shape)) kept.push_back(word);
  }
  return fmt::format("{}", fmt::join(kept, "-"));
}

std::optional<double> stated_billions(std::string_view model) {
  for (std::string_view word : split_words(model, "-")) {
    double factor = 1;
    if (const size_t times = word.find_first_of("xX"); times != word.npos && times > 0) {  // 8x7B
      const std::optional<double> copies = parse_number(word.substr(0, times));
      if (!copies) continue;
      factor = *copies;
      word.remove_prefix(times + 1);
    }
    if (word.size() < 2) continue;
    const char unit = lower_case(word.substr(word.size() - 1))[0];
    const std::optional<double> value = parse_number(word.substr(0, word.size() - 1));
    if (!value || *value <= 0 || (unit != 'b' && unit != 'm' && unit != 't')) continue;
    return factor * *value * (unit == 'b' ? 1 : unit == 'm' ? 1e-3 : 1e3);
  }
  return std::nullopt;
}

bool changes_the_model(std::string_view word) {
  constexpr std::string_view other_models[] = {
      "lite",  "mini",   "tiny",   "small", "nano",    "micro", "air",    "flash",   "pro",    "max",       "plus",
      "large", "medium", "super",  "ultra", "xl",      "xs",    "next",   "vl",      "omni",   "vision",    "audio",
      "ocr",   "coder",  "code",   "moe",   "distill", "draft", "eagle",  "eagle3",  "dspark", "dflash",    "mtp",
      "asr",   "tts",    "reward", "rm",    "linear",  "embed", "rerank", "colbert", "guard",  "embedding", "reranker"};
  const std::string lower = lower_case(word);
  if (std::find(std::begin(other_models), std::end(other_models), lower) != std::end(other_models)) return true;
  if (is_misspelled_format(lower)) return true;
  const bool is_version = lower.size() > 1 && lower[0] == 'v' && lower[1] >= '0' && lower[1] <= '9';
  const bool is_active = lower.size() > 1 && (lower[0] == 'a' || lower[0] == 'e') && stated_billions(lower.substr(1));
  return is_version || is_active || stated_billions(lower).has_value();
}

bool names_a_tuned_model(std::string_view word) {
  constexpr std::string_view tuned[] = {
      "abliterated", "aligned", "beta",     "cn",         "de",         "distilled",    "dpo",  "en",
      "exp",         "final",   "finetune", "finetuned",  "fr",         "ft",           "grpo", "heretic",
      "it",          "ja",      "jp",       "ko",         "kto",        "latest",       "lora", "math",
      "merged",      "orpo",    "ppo",      "preview",    "qat",        "reasoning",    "rl",   "rlhf",
      "sft",         "sql",     "tuned",    "uncensored", "unfiltered", "experimental", "zh"};
  const std::string lower = lower_case(word);
  if (std::find(std::begin(tuned), std::end(tuned), lower) != std::end(tuned)) return true;
  return !lower.empty() && lower.find_first_not_of("0123456789") == lower.npos;
}

namespace {

constexpr std::string_view start_of_name_warning = "unknown model name: ";

}  // namespace

std::string unknown_name_warning(std::string_view checkpoint, std::string_view unknown, std::string_view entry) {
  return fmt::format(
      "{}{} is not in the library, and {} is not a number format, a size or a usual name of a fine-tune. This answer "
      "is "
      "for {}. If the checkpoint has other layers, give {{model}} the path to its config.json",
      start_of_name_warning, printable(checkpoint), printable(unknown), entry);
}

bool is_name_warning(std::string_view note) {
  return note.starts_with(start_of_name_warning);
}

Model with_named_format(Model model, const CheckpointName& name, std::string_view publisher) {
  if (!name.format) return model;
  if (!name.format->scheme) refuse_format(name, "this format is not simulated");
  Scheme scheme = *name.format->scheme;
  model.int4_bytes.reset();  // of the groups of another checkpoint
  const bool is_nvidia = equal_ignoring_case(name.organization, "nvidia");
  // AMD's checkpoints also quantize activations.
  if (scheme == Scheme::mxfp4_wo && equal_ignoring_case(name.organization, "amd")) scheme = Scheme::mxfp4;
  const bool is_own = name.organization.empty() || equal_ignoring_case(name.organization, publisher);
  if (scheme == Scheme::fp8 &&
      ((is_own && publishes_blocks(publisher, model.family)) || model.scheme == Scheme::fp8_block)) {
    scheme = Scheme::fp8_block;
  }
  const bool states_nvfp4 = lower_case(name.format->text).find("nvfp4") != std::string::npos;
  if (scheme == Scheme::nvfp4 && !states_nvfp4 && is_own && publishes_mxfp4(publisher)) scheme = Scheme::mxfp4_wo;
  const Scheme plain = plain_scheme(model.dtype);
  std::string parts;
  if (facts(scheme).weight_bytes >= 2) {
    model.scheme = model.expert_scheme = scheme;
    model.attention_scheme.reset();
    model.dtype = facts(scheme).math;
  } else if (scheme == Scheme::mxfp4_wo && model.has_experts()) {
    model.scheme = plain;
    model.attention_scheme.reset();
    model.expert_scheme = scheme;
    parts = " in routed experts";
  } else if (scheme == Scheme::nvfp4 && facts(model.expert_scheme).weight_bytes < 1 &&
             facts(model.scheme).weight_bytes < 2) {
    // DeepSeek-V4: what is not a routed expert keeps the publisher's format (NVIDIA's checkpoints).
    model.expert_scheme = scheme;
    parts = fmt::format(" in routed experts, the rest in {}", facts(model.scheme).name);
  } else {
    model.scheme = model.expert_scheme = scheme;
    model.attention_scheme.reset();
    const KeptByNvidia kept = kept_of(model, name);
    if (scheme == Scheme::nvfp4 && kept.attention && kept.shared_experts && model.has_experts()) {
      model.scheme = plain;
      parts = fmt::format(" in routed experts, the rest in {}", facts(plain).name);
    } else if (scheme == Scheme::nvfp4 && kept.attention) {
      model.attention_scheme = plain;
      parts = fmt::format(", attention in {}", facts(plain).name);
    }
  }
  // NVIDIA's fp4 and fp8 checkpoints ask for an fp8 cache (hf_quant_config.json: kv_cache_quant_algo), and engines
  // listen.
  const bool asks_for_cache = is_nvidia && (scheme == Scheme::nvfp4 || scheme == Scheme::fp8);
  if (name.format->states_fp8_cache || asks_for_cache) {
    model.cache_dtype = DType::fp8;
    parts += "; the checkpoint asks for an fp8 KV cache; {kv_cache_dtype} bf16 overrides it";
  }
  model.named_scheme = scheme;
  model.notes.push_back(fmt::format("{} in the model's name sets the format {}: {}{}{}", name.format->text,
                                    facts(scheme).name, facts(scheme).summary, parts, name.format->caveat));
  return model;
}

}  // namespace foretoken
