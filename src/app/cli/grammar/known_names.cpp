#include "app/cli/grammar/known_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// What people call a flag, and the flags of ours that mean it: the first that the command has. Behind = stands a value.
constexpr std::pair<std::string_view, std::string_view> words_of_people[] = {
    {"--rate", "--request-rate"},
    {"--qps", "--request-rate"},
    {"--rps", "--request-rate"},
    {"--input-len", "--random-input-len --seq-length"},
    {"--prompt-len", "--random-input-len --input-len"},
    {"--output-len", "--random-output-len"},
    {"--max-tokens", "--random-output-len"},
    {"--concurrency", "--max-concurrency"},
    {"--users", "--max-concurrency"},
    {"--duration", "--num-prompts"},
    {"--tokens", "--train-tokens --batch"},
    {"--gpu", "--device"},
    {"--gpus", "--devices --tensor-parallel-size --device"},
    {"--num-gpus", "--devices --tensor-parallel-size --device"},
    {"--fp8", "--quantization=fp8 --quantizations=fp8 --precision=fp8"},
    {"--dtype", "--quantization --quantizations --precision"},
    {"--quantization", "--quantizations --precision --dtype"},
    {"-q", "--quantization --quantizations --precision --dtype"},
    {"--fsdp", "--sharding=parameters"},
    {"--zero", "--sharding=parameters"},
    {"--batch-size", "--batch --global-batch-size --max-num-seqs"},
    {"--seq-len", "--seq-length --context-len"},
};

std::string with_value(std::string_view flag) {
  std::string text(flag);
  std::replace(text.begin(), text.end(), '=', ' ');
  return text;
}

}  // namespace

void check_names(const std::string& flag, std::span<const std::string> given, std::span<const std::string> known) {
  constexpr size_t most_listed = 12;
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto listed = known.first(std::min(most_listed, known.size()));
    throw InputError(
        {.source = flag,
         .value = printable(name),
         .expected = fmt::format("one of {}{}", fmt::join(listed, ", "), known.size() > most_listed ? ", ..." : ""),
         .suggestion = nearest_name(name, known).value_or("")});
  }
}

std::string name_meant(const std::string& typed, std::span<const std::string> known) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"gpu", "cuda"}, {"nvidia", "cuda"}, {"amd", "rocm"}, {"hip", "rocm"}};
  for (const auto& [word, name] : words) {
    if (typed == word && std::find(known.begin(), known.end(), name) != known.end()) return std::string(name);
  }
  const bool is_file = typed.ends_with(".json") && std::find(known.begin(), known.end(), "file") != known.end();
  return is_file ? "file " + typed : nearest_name(typed, known).value_or("");
}

std::string flag_meant(const std::string& typed, std::span<const std::string> known) {
  const auto has = [&](const char* name) { return std::find(known.begin(), known.end(), name) != known.end(); };
  if (typed == "--hardware" && has("--device")) {
    return std::string(has("--devices") ? "--device with --devices" : "--device") +
           (has("--cluster") ? ", or --cluster" : "");
  }
  constexpr std::string_view names_of_devices[] = {"--device", "--devices", "--gpu", "--gpus", "--cluster", "--node"};
  const bool is_of_devices =
      std::find(std::begin(names_of_devices), std::end(names_of_devices), typed) != std::end(names_of_devices);
  if (is_of_devices && has("--hardware")) return "--hardware 8xH100";
  for (const auto& [word, flags] : words_of_people) {
    if (word != typed) continue;
    for (const std::string_view flag : split_words(flags, " ")) {
      if (has(std::string(flag.substr(0, flag.find('='))).c_str())) return with_value(flag);
    }
  }
  return nearest_name(typed, known).value_or("");
}

std::string shown_word(const std::string& word) {
  const bool is_seen = word.find_first_not_of(" \t") != word.npos;
  return is_seen ? printable(word) : fmt::format("\"{}\"", printable(word));
}

}  // namespace foretoken
