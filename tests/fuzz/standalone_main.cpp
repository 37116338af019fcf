// Runs a fuzz target without libFuzzer, so that g++ and its sanitizers can fuzz too: mutates the files of a corpus
// folder for a number of seconds. The inputs depend on the seed only; how many there are depends on the time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "fuzz.h"

// Of the sanitizer's run-time library, where one is linked.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using namespace foretoken;
using Clock = std::chrono::steady_clock;

constexpr size_t longest_input = size_t{1} << 16;
constexpr const char* crash_file = "fuzz-crash-input";

std::string current_input;  // where the death callback finds it

void keep_current_input() {
  if (std::FILE* file = std::fopen(crash_file, "wb")) {
    std::fwrite(current_input.data(), 1, current_input.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "the input is in ./%s\n", crash_file);
}

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds = {""};
  for (const auto& path : paths) seeds.push_back(read_file(path, longest_input));
  return seeds;
}

// Changes that parsers are known to trip over, one at a time.
void mutate(std::string& text, const std::vector<std::string>& seeds, RandomStream& stream) {
  using namespace std::string_literals;
  static const std::string tokens[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       "\\",
                                       ",",
                                       ":",
                                       "\n",
                                       "\r\n",
                                       "\0"s,
                                       "null",
                                       "true",
                                       "-",
                                       "1e400",
                                       "1e30",
                                       "0.5",
                                       "NaN",
                                       "\\ud800",
                                       "\\u0000",
                                       "-1",
                                       "\"\"",
                                       "[[[[",
                                       "{\"a\":",
                                       "\xff",
                                       "\xc3",
                                       "\xEF\xBB\xBF",
                                       "0",
                                       "9223372036854775808"};
  const size_t at = stream.below(text.size() + 1);
  const size_t length = std::min<size_t>(stream.below(16), text.size() - at);
  switch (stream.below(8)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << stream.below(8)));
      break;
    case 1:
      text.insert(at, 1, static_cast<char>(stream.below(256)));
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, std::string(text, at, length));
      break;
    case 4:
      text.insert(at, tokens[stream.below(std::size(tokens))]);
      break;
    case 5:
      text.replace(at, length, tokens[stream.below(std::size(tokens))]);
      break;
    case 6: {
      const std::string& other = seeds[stream.below(seeds.size())];
      text = text.substr(0, at) + other.substr(stream.below(other.size() + 1));
      break;
    }
    default: {
      const std::string& token = tokens[stream.below(std::size(tokens))];
      std::string many;
      for (uint64_t i = stream.below(200); i > 0; --i) many += token;
      text.insert(at, many);
    }
  }
  if (text.size() > longest_input) text.resize(longest_input);
}

bool runs_clean(const std::string& input) {
  current_input = input;
  const Clock::time_point begin = Clock::now();
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  } catch (const std::exception& error) {
    fmt::print(stderr, "finding: {}\n", error.what());
    keep_current_input();
    return false;
  }
  if (Clock::now() - begin < std::chrono::seconds(10)) return true;
  fmt::print(stderr, "more than 10 s for one input\n");
  keep_current_input();
  return false;
}

struct Options {
  int64_t seconds = 10, seed = 1;
  std::string corpus = FORETOKEN_FUZZ_CORPUS;
};

Options parse_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--")) {
      options.corpus = word;
      continue;
    }
    const std::optional<int64_t> value = i + 1 < count ? parse_integer(words[++i]) : std::nullopt;
    if (!value || (word != "--seconds" && word != "--seed")) {
      throw InputError({.source = std::string(word), .expected = "--seconds N, --seed S or a corpus folder"});
    }
    (word == "--seconds" ? options.seconds : options.seed) = *value;
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  try {
    const Options options = parse_options(count, words);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_current_input);
    const std::vector<std::string> seeds = read_corpus(options.corpus);
    const Clock::time_point end = Clock::now() + std::chrono::seconds(options.seconds);
    RandomStream stream(static_cast<uint64_t>(options.seed), "fuzz");
    size_t inputs = 0;
    for (const std::string& seed : seeds) {
      if (!runs_clean(seed)) return 1;
      ++inputs;
    }
    while (Clock::now() < end) {
      std::string input = seeds[stream.below(seeds.size())];
      for (uint64_t changes = 1 + stream.below(6); changes > 0; --changes) mutate(input, seeds, stream);
      if (!runs_clean(input)) return 1;
      ++inputs;
    }
    fmt::print("{} inputs, no crash\n", inputs);
    return 0;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
