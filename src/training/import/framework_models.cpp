#include "training/import/framework_models.h"

#include "base/text.h"

namespace foretoken {
namespace {

struct TitanModel {
  std::string_view name, flavor, model;
};
// torchtitan/models/*/__init__.py
constexpr TitanModel titan_models[] = {{"llama3", "8B", "meta-llama/Llama-3.1-8B"},
                                       {"llama3", "70B", "meta-llama/Llama-3.1-70B"},
                                       {"llama3", "405B", "meta-llama/Llama-3.1-405B"},
                                       {"llama3", "1B", "meta-llama/Llama-3.2-1B"},
                                       {"llama3", "3B", "meta-llama/Llama-3.2-3B"},
                                       {"llama4", "17bx16e", "meta-llama/Llama-4-Scout-17B-16E-Instruct"},
                                       {"llama4", "17bx128e", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"},
                                       {"deepseek_v3", "671B", "deepseek-ai/DeepSeek-V3"},
                                       {"qwen3", "0.6B", "Qwen/Qwen3-0.6B"},
                                       {"qwen3", "1.7B", "Qwen/Qwen3-1.7B"},
                                       {"qwen3", "4B", "Qwen/Qwen3-4B"},
                                       {"qwen3", "8B", "Qwen/Qwen3-8B"},
                                       {"qwen3", "14B", "Qwen/Qwen3-14B"},
                                       {"qwen3", "32B", "Qwen/Qwen3-32B"},
                                       {"qwen3", "30B-A3B", "Qwen/Qwen3-30B-A3B"},
                                       {"qwen3", "235B-A22B", "Qwen/Qwen3-235B-A22B"},
                                       {"gpt_oss", "20b", "openai/gpt-oss-20b"},
                                       {"gpt_oss", "120b", "openai/gpt-oss-120b"}};

struct TuneModel {
  std::string_view module, builder, model;
};
// torchtune/models/*/_model_builders.py
constexpr TuneModel tune_models[] = {{"llama2", "llama2_7b", "meta-llama/Llama-2-7b-hf"},
                                     {"llama2", "llama2_13b", "meta-llama/Llama-2-13b-hf"},
                                     {"llama2", "llama2_70b", "meta-llama/Llama-2-70b-hf"},
                                     {"code_llama2", "code_llama2_34b", "codellama/CodeLlama-34b-Instruct-hf"},
                                     {"llama3", "llama3_8b", "meta-llama/Meta-Llama-3-8B"},
                                     {"llama3", "llama3_70b", "meta-llama/Meta-Llama-3-70B"},
                                     {"llama3_1", "llama3_1_8b", "meta-llama/Llama-3.1-8B"},
                                     {"llama3_1", "llama3_1_70b", "meta-llama/Llama-3.1-70B"},
                                     {"llama3_1", "llama3_1_405b", "meta-llama/Llama-3.1-405B"},
                                     {"llama3_2", "llama3_2_1b", "meta-llama/Llama-3.2-1B"},
                                     {"llama3_2", "llama3_2_3b", "meta-llama/Llama-3.2-3B"},
                                     {"llama3_3", "llama3_3_70b", "meta-llama/Llama-3.3-70B-Instruct"},
                                     {"mistral", "mistral_7b", "mistralai/Mistral-7B-v0.1"},
                                     {"gemma2", "gemma2_2b", "google/gemma-2-2b"},
                                     {"gemma2", "gemma2_9b", "google/gemma-2-9b"},
                                     {"gemma2", "gemma2_27b", "google/gemma-2-27b"},
                                     {"phi3", "phi3_mini", "microsoft/Phi-3-mini-4k-instruct"},
                                     {"phi4", "phi4_14b", "microsoft/phi-4"},
                                     {"qwen2_5", "qwen2_5_0_5b", "Qwen/Qwen2.5-0.5B"},
                                     {"qwen2_5", "qwen2_5_1_5b_base", "Qwen/Qwen2.5-1.5B"},
                                     {"qwen2_5", "qwen2_5_3b", "Qwen/Qwen2.5-3B"},
                                     {"qwen2_5", "qwen2_5_7b_base", "Qwen/Qwen2.5-7B"},
                                     {"qwen2_5", "qwen2_5_7b_instruct", "Qwen/Qwen2.5-7B"},
                                     {"qwen2_5", "qwen2_5_14b_instruct", "Qwen/Qwen2.5-14B"},
                                     {"qwen2_5", "qwen2_5_32b_instruct", "Qwen/Qwen2.5-32B"},
                                     {"qwen2_5", "qwen2_5_72b_instruct", "Qwen/Qwen2.5-72B"},
                                     {"qwen3", "qwen3_0_6b_instruct", "Qwen/Qwen3-0.6B"},
                                     {"qwen3", "qwen3_1_7b_instruct", "Qwen/Qwen3-1.7B"},
                                     {"qwen3", "qwen3_4b_instruct", "Qwen/Qwen3-4B"},
                                     {"qwen3", "qwen3_8b_instruct", "Qwen/Qwen3-8B"},
                                     {"qwen3", "qwen3_14b_instruct", "Qwen/Qwen3-14B"},
                                     {"qwen3", "qwen3_32b", "Qwen/Qwen3-32B"}};

}  // namespace

std::optional<std::string> model_of_titan(const TitanName& titan) {
  for (const TitanModel& known : titan_models) {
    if (equal_ignoring_case(known.name, titan.name) && equal_ignoring_case(known.flavor, titan.flavor)) {
      return std::string(known.model);
    }
  }
  return std::nullopt;
}

std::optional<TitanName> titan_of_model(std::string_view model) {
  for (const TitanModel& known : titan_models) {
    if (known.model == model) return TitanName{.name = known.name, .flavor = known.flavor};
  }
  return std::nullopt;
}

std::optional<std::string> model_of_tune(std::string_view builder) {
  for (const TuneModel& known : tune_models) {
    if (known.builder == builder) return std::string(known.model);
  }
  return std::nullopt;
}

std::optional<TuneName> tune_of_model(std::string_view model) {
  for (const TuneModel& known : tune_models) {
    if (known.model == model) return TuneName{.module = known.module, .builder = known.builder};
  }
  return std::nullopt;
}

}  // namespace foretoken
