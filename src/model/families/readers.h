// One reader per family; list.cpp says which model_type each serves.
#pragma once

#include "model/model.h"

namespace foretoken {

class ConfigReader;

// llama.cpp: decoders of norm, attention, norm, gated MLP
Model read_llama(ConfigReader& config);
Model read_llada(ConfigReader& config);
Model read_mistral(ConfigReader& config);
Model read_qwen(ConfigReader& config);
Model read_qwen2(ConfigReader& config);
Model read_qwen3(ConfigReader& config);
Model read_phi3(ConfigReader& config);
Model read_glm(ConfigReader& config);
Model read_chatglm(ConfigReader& config);
Model read_olmo2(ConfigReader& config);
Model read_smollm3(ConfigReader& config);

// gpt.cpp: decoders with layer norms and an ungated MLP
Model read_gpt2(ConfigReader& config);
Model read_opt(ConfigReader& config);
Model read_bloom(ConfigReader& config);
Model read_falcon(ConfigReader& config);
Model read_phi(ConfigReader& config);
Model read_gpt_bigcode(ConfigReader& config);
Model read_mpt(ConfigReader& config);
Model read_nemotron(ConfigReader& config);

// encoder.cpp
Model read_bert(ConfigReader& config);
Model read_t5(ConfigReader& config);

// experts.cpp: ordinary attention, routed experts
Model read_mixtral(ConfigReader& config);
Model read_phimoe(ConfigReader& config);
Model read_qwen2_moe(ConfigReader& config);
Model read_qwen3_moe(ConfigReader& config);
Model read_glm4_moe(ConfigReader& config);
Model read_gpt_oss(ConfigReader& config);
Model read_llama4(ConfigReader& config);
Model read_ernie4_5_moe(ConfigReader& config);

// deepseek.cpp
Model read_deepseek(ConfigReader& config);
Model read_deepseek_v4(ConfigReader& config);

// gemma.cpp
Model read_gemma(ConfigReader& config);
Model read_gemma2(ConfigReader& config);
Model read_gemma3(ConfigReader& config);
Model read_gemma4(ConfigReader& config);

// minimax.cpp
Model read_minimax_m2(ConfigReader& config);
Model read_minimax_m3(ConfigReader& config);
Model read_minimax_text_01(ConfigReader& config);

// windowed_experts.cpp: routed experts behind full and sliding attention with heads of their own
Model read_mimo_v2(ConfigReader& config);
Model read_laguna(ConfigReader& config);
Model read_step3p5(ConfigReader& config);

// bailing.cpp
Model read_bailing_hybrid(ConfigReader& config);
Model read_bailing_moe(ConfigReader& config);

// lfm2.cpp
Model read_lfm2(ConfigReader& config);

// hybrid.cpp: linear attention or state space between attention layers
Model read_qwen3_5(ConfigReader& config);
Model read_kimi_linear(ConfigReader& config);
Model read_nemotron_h(ConfigReader& config);
Model read_mamba2(ConfigReader& config);

}  // namespace foretoken
