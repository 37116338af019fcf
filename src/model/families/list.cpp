// The model families: add your line here. The words are the values of `model_type` that the reader serves.
#include <algorithm>
#include <cctype>

#include "model/families/readers.h"
#include "model/family.h"

namespace foretoken {
namespace {

constexpr Family list[] = {
    {"llama yi internlm2 granite ernie4_5", "norm, grouped attention, norm, gated MLP", read_llama},
    {"llada", "LLaDA, a diffusion language model: llama under other key names", read_llada},
    {"mistral ministral mistral3 ministral3", "llama with a sliding window; Mistral 3 without one", read_mistral},
    {"qwen", "the first Qwen: multi-head, q/k/v bias", read_qwen},
    {"qwen2 mimo qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text", "llama with q/k/v bias", read_qwen2},
    {"qwen3 qwen3_vl qwen3_vl_text", "llama with a norm on each query and key head", read_qwen3},
    {"phi3", "Phi-3 and Phi-4: llama with fused projections", read_phi3},
    {"glm glm4", "GLM-4: q/k/v bias, half-rotary heads", read_glm},
    {"chatglm", "GLM-4 under its first key names", read_chatglm},
    {"olmo2 olmo3", "norms after the blocks, query and key normed whole", read_olmo2},
    {"smollm3", "SmolLM3: llama with every fourth layer without positions", read_smollm3},
    {"gpt2", "GPT-2, GPT-3 and Megatron GPT: learned positions, ungated MLP", read_gpt2},
    {"opt", "OPT: learned positions, ReLU MLP", read_opt},
    {"bloom", "BLOOM: ALiBi, a norm after the embedding", read_bloom},
    {"falcon refinedweb refinedwebmodel", "Falcon: parallel attention and MLP", read_falcon},
    {"phi", "Phi-2: parallel block with biases", read_phi},
    {"gpt_bigcode", "StarCoder and SantaCoder: GPT-2 with one key and value head", read_gpt_bigcode},
    {"mpt", "MPT: ALiBi, ungated MLP, mostly without biases", read_mpt},
    {"nemotron", "Nemotron-4 and Minitron: squared-ReLU MLP, half-rotary heads", read_nemotron},
    {"bert roberta xlm-roberta camembert", "encoder only", read_bert},
    {"t5 mt5 switch_transformers", "encoder and decoder; Switch has experts in every second layer", read_t5},
    {"mixtral", "llama with experts", read_mixtral, true},
    {"phimoe", "Phi-3.5-MoE: experts, layer norms, biases", read_phimoe, true},
    {"qwen2_moe", "experts with a gated shared expert, q/k/v bias", read_qwen2_moe, true},
    {"qwen3_moe qwen3_vl_moe qwen3_vl_moe_text", "experts, a norm on each query and key head", read_qwen3_moe, true},
    {"glm4_moe", "GLM-4.5: DeepSeek's experts, grouped attention", read_glm4_moe, true},
    {"gpt_oss", "experts with biases, sinks, windows on every second layer", read_gpt_oss, true},
    {"llama4 llama4_text", "experts with a shared one, chunked attention on three layers of four", read_llama4, true},
    {"deepseek_v3 deepseek_v2 kimi_k2 kimi_k25 deepseek_v32 glm_moe_dsa glm4_moe_lite deepseek_vl_v2",
     "latent attention, fine-grained experts", read_deepseek, true},
    {"deepseek_v4", "compressed attention, hyper-connections, fine-grained experts", read_deepseek_v4, true},
    {"gemma", "head size apart from the width, tied", read_gemma},
    {"gemma2", "four norms a layer, window on every second layer", read_gemma2},
    {"gemma3 gemma3_text", "five window layers, then a full one", read_gemma3},
    {"gemma4 gemma4_text", "full layers with their own head size; dense MLP beside experts", read_gemma4, true},
    {"minimax_m2", "experts, query and key normed whole", read_minimax_m2, true},
    {"minimax_m3 minimax_m3_vl minimax_m3_text", "experts, block-sparse attention", read_minimax_m3, true},
    {"minimax_text_01 minimax_m1 minimax", "seven lightning-attention layers, then a softmax one", read_minimax_text_01,
     true},
    {"qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_next interns2_mobius interns2_mobius_text minicpmv4_6",
     "three gated-delta layers, then full attention", read_qwen3_5, true},
    {"kimi_linear kimi_k3", "three KDA layers, then latent attention", read_kimi_linear, true},
    {"bailing_hybrid", "Ling and Ring 2.5 to 3.0: linear attention (KDA or lightning), then latent attention",
     read_bailing_hybrid, true},
    {"bailing_moe bailing_moe_v2", "Ling and Ring 2.0: grouped attention, fine-grained experts", read_bailing_moe,
     true},
    {"lfm2 lfm2_moe lfm2_vl", "gated short convolutions and attention layers", read_lfm2, true},
    {"mimo_v2 mimo_v2_flash", "experts; full and sliding attention, values narrower than keys", read_mimo_v2, true},
    {"laguna", "experts; gated full and sliding attention, heads by layer", read_laguna, true},
    {"step3p5 step3p7", "experts; full and sliding attention with a gate for each head", read_step3p5, true},
    {"ernie4_5_moe", "experts with shared ones, grouped attention", read_ernie4_5_moe, true},
    {"nemotron_h", "Mamba-2, attention, MLP or experts, by a pattern string", read_nemotron_h, true},
    {"mamba2", "Mamba-2 only", read_mamba2},
};

// qwen3_5_moe and Qwen3_5MoeForCausalLM both become qwen35moe.
std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

std::string_view without_task(std::string_view architecture) {
  for (const std::string_view task :
       {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForMaskedLM", "ForTextGeneration", "Model"}) {
    if (architecture.size() > task.size() && architecture.ends_with(task)) {
      return architecture.substr(0, architecture.size() - task.size());
    }
  }
  return architecture;
}

template <class Visit>
void for_each_word(std::string_view words, Visit visit) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    visit(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

}  // namespace

std::span<const Family> families() {
  return list;
}

const Family* find_family(std::string_view model_type_or_architecture) {
  const std::string wanted = folded(without_task(model_type_or_architecture));
  const Family* found = nullptr;
  for (const Family& family : list) {
    for_each_word(family.model_types, [&](std::string_view type) {
      if (found == nullptr && folded(type) == wanted) found = &family;
    });
  }
  return found;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const Family& family : list) {
    for_each_word(family.model_types, [&](std::string_view type) { types.emplace_back(type); });
  }
  return types;
}

std::vector<std::string> model_types_with_experts() {
  std::vector<std::string> types;
  for (const Family& family : list) {
    if (!family.reads_experts) continue;
    for_each_word(family.model_types, [&](std::string_view type) { types.emplace_back(type); });
  }
  return types;
}

}  // namespace foretoken
