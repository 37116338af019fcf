// The models we ship (data/models), found by the names people type.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace foretoken {

// What a data file says about a model besides its shapes.
struct ModelEntry {
  std::string name;                            // org/name on the hub
  std::vector<std::string> aliases;            // other names of the same architecture
  std::string family;                          // model_type
  std::string source;                          // where the dimensions come from
  std::string checked;                         // copied | cross-checked | evaluation | unchecked
  std::optional<double> published_parameters;  // as the publisher counts
  std::optional<double> published_active;
  std::string published_source;
  std::filesystem::path file;
};

// What a name that people type stands for.
struct ResolvedName {
  std::string entry;        // hub id of the model that has its shapes; empty = a path
  std::string checkpoint;   // what an engine is told to load: a hub id, or a path
  bool is_listed = true;    // but for a format behind it; else a relative by its name has the shapes
  bool has_format = false;  // the name states a number format that the entry's config does not
  std::string unread;       // words of the name that are not known: taken to change neither shapes nor the format
};

class ModelCatalogue {
 public:
  // Lists the folder; files are read only when asked for. InputError when the folder is not there.
  explicit ModelCatalogue(std::filesystem::path directory);

  // By hub id or the part after the slash, in any case; by alias; by either with a number format behind it (-FP8, -AWQ,
  // ...), whoever quantized it; with unknown words behind it; or a path to a config.json, its directory, or a file of
  // ours. InputError names the family's reader and its nearest known sizes.
  ResolvedName resolve(std::string_view name) const;
  Model model(std::string_view name) const;  // in the format that the name states
  ModelEntry entry(std::string_view name) const;

  const std::vector<std::string>& names() const { return names_; }  // hub ids, sorted
  std::vector<ModelEntry> entries() const;

 private:
  std::filesystem::path file_of(std::string_view id) const;
  std::optional<std::string> find_by_file_name(std::string_view name) const;
  std::optional<ResolvedName> find_by_alias(std::string_view name) const;
  std::optional<ResolvedName> find_by_parts(std::string_view name) const;
  std::optional<ResolvedName> find_by_start(std::string_view name) const;
  std::string relatives_text(std::string_view name) const;
  [[noreturn]] void fail_unknown(std::string_view name) const;

  std::filesystem::path directory_;
  std::vector<std::string> names_;
};

}  // namespace foretoken
