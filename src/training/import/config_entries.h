// A configuration file as a flat list: dotted keys (or flags) and their values as text, each with its line. What
// frameworks write in YAML, JSON and shell scripts looks alike from here on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct ConfigEntry {
  std::string key;    // model.tensor_model_parallel_size; of a script tensor-model-parallel-size
  std::string value;  // "" of a flag without one; a list in brackets
  int line = 0;
  bool computed = false;  // the value is worked out when the job starts: $((A * B)), ${multiply:...}
};

struct ConfigEntries {
  std::string source;  // names the file in errors
  std::vector<ConfigEntry> entries;

  const ConfigEntry* find(std::string_view key) const;
};

// true, yes, on, 1 and a flag without a value; false, no, off, 0. Nothing: none of these words.
std::optional<bool> flag_from_text(std::string_view text);

// One value in the hands of a rule. InputError names file, line, key and value.
class ConfigValue {
 public:
  ConfigValue(const std::string& source, const ConfigEntry& entry) : source_(source), entry_(entry) {}

  const std::string& text() const { return entry_.value; }
  int64_t count(int64_t least = 1, int64_t most = 1'000'000'000) const;
  double rate() const;  // a share from 0 to 1
  bool flag() const;    // flag_from_text
  [[noreturn]] void fail(std::string expected, std::string suggestion = "") const;

 private:
  const std::string& source_;
  const ConfigEntry& entry_;
};

// Values that are null are left out: they say nothing. References to another key (`${variables.max_seq_len}`,
// OmegaConf) are followed.
ConfigEntries yaml_entries(std::string_view text, const std::string& source);
ConfigEntries toml_entries(std::string_view text, const std::string& source);
ConfigEntries json_entries(std::string_view text, const std::string& source);
// Flags of a shell script or of a list of arguments, wherever they stand; variables that the script sets are followed.
ConfigEntries argument_entries(std::string_view text, const std::string& source);

}  // namespace foretoken
