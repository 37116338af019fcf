#include "app/observe/prompt_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/random.h"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, 64> common_words = {
    " the", " and", " for", " are", " but", " not", " you", " all", " any", " can", " had", " her", " was",
    " one", " our", " out", " day", " get", " has", " him", " his", " how", " man", " new", " now", " old",
    " see", " two", " way", " who", " boy", " did", " its", " let", " put", " say", " she", " too", " use",
    " big", " end", " far", " got", " run", " set", " own", " off", " why", " try", " few", " ask", " men",
    " cut", " car", " eat", " sea", " red", " top", " air", " bad", " act", " add", " age", " art"};

void add_words(uint64_t key, int64_t count, std::string& text) {
  uint64_t state = key;
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 10 == 0) bits = splitmix64(state);
    text += common_words[bits & 63];
    bits >>= 6;
  }
}

}  // namespace

std::string prompt_text(const Request& request, uint64_t seed) {
  std::string text;
  text.reserve(static_cast<size_t>(request.input_tokens) * 4);
  int64_t left = request.input_tokens;
  for (const int64_t block : request.prefix_blocks) {
    const int64_t words = std::min<int64_t>(left, request.prefix_block_tokens);
    add_words(seed ^ (static_cast<uint64_t>(block) * 0x9e3779b97f4a7c15ULL), words, text);
    left -= words;
  }
  add_words((seed + 1) * 0xd1342543de82ef95ULL + static_cast<uint64_t>(request.id), left, text);
  return text;
}

}  // namespace foretoken
