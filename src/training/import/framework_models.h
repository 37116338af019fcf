// Models under the names that training frameworks have for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

// torchtitan: a name and a flavor of it (llama3, 8B).
struct TitanName {
  std::string_view name, flavor;
};
std::optional<std::string> model_of_titan(const TitanName& titan);
std::optional<TitanName> titan_of_model(std::string_view model);

// torchtune: the function that builds the model, without `lora_` (llama3_1_8b), and the module it lies in (llama3_1).
struct TuneName {
  std::string_view module, builder;
};
// Its losses that take the head's output in eight chunks have 16-bit logits and gradients, and fp32 copies of one
// chunk.
inline constexpr double tune_chunked_logit_bytes = 2 + 12.0 / 8;
std::optional<std::string> model_of_tune(std::string_view builder);
std::optional<TuneName> tune_of_model(std::string_view model);

}  // namespace foretoken
