// What prompts and answers are about: models guess some texts more easily than others.
#pragma once

#include <cstdint>
#include <string_view>

namespace foretoken {

enum class PromptTexts : uint8_t {
  natural,  // of many kinds, as people write and read them
  code,
  random,  // tokens drawn by chance and answers that go on beyond their end, as load generators send them
};
inline constexpr std::string_view prompt_text_names[] = {"natural", "code", "random"};

}  // namespace foretoken
