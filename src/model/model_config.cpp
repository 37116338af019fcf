#include "model/model_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/config_reader.h"
#include "model/family.h"
#include "model/number_formats.h"

namespace foretoken {
namespace {

constexpr JsonLimits config_limits{.max_bytes = size_t{16} << 20, .max_depth = 32, .max_values = 500'000};

struct Said {
  std::string name;
  bool is_model_type = true;  // else an architecture
};

// The words by which a config says what it is, in the order they are tried.
std::vector<Said> names_of(const JsonView& text, const JsonView& whole) {
  std::vector<Said> names;
  for (const JsonView* part : {&whole, &text}) {
    if (const auto type = part->find("model_type")) names.push_back({type->string()});
  }
  for (const JsonView* part : {&whole, &text}) {
    const auto architectures = part->find("architectures");
    if (!architectures || architectures->items().empty()) continue;
    names.push_back({.name = architectures->items().front().string(), .is_model_type = false});
  }
  return names;
}

// The known type with the longest common start, where no small edit leads to one.
std::string nearest_type(const std::string& typed, const std::vector<std::string>& known) {
  if (const auto near = nearest_name(typed, known)) return *near;
  size_t longest = 2;
  std::string best;
  for (const std::string& type : known) {
    const auto end = std::mismatch(type.begin(), type.end(), typed.begin(), typed.end()).first;
    const auto common = static_cast<size_t>(end - type.begin());
    if (common > longest) {
      longest = common;
      best = type;
    }
  }
  return best;
}

// The key by which a config says that it routes tokens to experts; empty: it says nothing of the kind.
std::string expert_key(const JsonView& text) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts",
                          "num_experts_per_tok", "moe_intermediate_size", "moe_topk", "moe_top_k"}) {
    const auto value = text.find(key);
    if (!value || value->is(Json::Kind::null)) continue;
    const bool is_number = value->is(Json::Kind::integer) || value->is(Json::Kind::number);
    if (!is_number || value->number() > 1) return key;
  }
  return {};
}

[[noreturn]] void fail_unknown_family(const JsonView& text, const JsonView& whole, const std::vector<Said>& names) {
  std::vector<std::string> lacking;
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"}) {
    if (!text.has(key)) lacking.emplace_back(key);
  }
  const std::string experts = expert_key(text);
  const std::vector<std::string> known = experts.empty() ? known_model_types() : model_types_with_experts();
  std::string expected = fmt::format("a family that is known: {}.", fmt::join(known, ", "));
  if (!experts.empty()) {
    expected = fmt::format(
        "a family that reads experts, because the config has {}: {}. If the layers have the shapes of one of these "
        "families, set model_type to it",
        experts, fmt::join(known, ", "));
  } else if (lacking.empty()) {
    expected += " It has all common keys: if its layers are shaped like llama's, set model_type to llama";
  } else {
    expected += fmt::format(" Of the common keys it lacks {}", fmt::join(lacking, ", "));
  }
  throw InputError({.source = whole.source(),
                    .line = whole.value().line(),
                    .path = "model_type",
                    .value = names.empty() ? "(absent, and no architectures)" : printable(names.front().name),
                    .expected = std::move(expected),
                    .suggestion = names.empty() ? "" : nearest_type(names.front().name, known)});
}

// A dense family would read a model of experts as a far smaller one.
void check_experts_are_read(const JsonView& text, const Said& said, const Model& model, const Family& family) {
  if (family.reads_experts || model.has_experts()) return;
  const std::string experts = expert_key(text);
  if (experts.empty()) return;
  throw InputError({.source = text.source(),
                    .line = text.value().line(),
                    .path = "model_type",
                    .value = printable(said.name),
                    .expected = fmt::format("a family that reads experts, because the config has {}: {}", experts,
                                            fmt::join(model_types_with_experts(), ", "))});
}

Model read_config(const JsonView& whole, const std::optional<JsonView>& quantization_beside) {
  if (!whole.is(Json::Kind::object)) whole.fail("an object with the keys of a config.json");
  JsonView text = whole;
  for (const char* part : {"text_config", "language_config", "llm_config"}) {
    if (const auto found = whole.find(part)) {
      text = *found;
      break;
    }
  }
  if (!text.is(Json::Kind::object)) text.fail("an object");

  const std::vector<Said> names = names_of(text, whole);
  for (const Said& said : names) {
    const Family* family = find_family(said.name);
    if (family == nullptr) continue;
    ConfigReader config(text, whole);
    Model model = family->read(config);
    check_experts_are_read(text, said, model, *family);
    read_number_formats(config, quantization_beside, model);
    model.family = said.is_model_type ? said.name : family->model_types.substr(0, family->model_types.find(' '));
    model.notes = std::move(config.notes());
    ensure(!model.layers.empty(), "a family reader gives at least one layer");
    return model;
  }
  fail_unknown_family(text, whole, names);
}

// A file of data/models wraps the config; anything else is taken as the publisher's own.
Model read_document(const JsonView& document, const std::string& name,
                    const std::optional<JsonView>& quantization_beside) {
  const bool wrapped = document.is(Json::Kind::object) && document.has("config") && document.has("name");
  Model model = read_config(wrapped ? document.at("config") : document, quantization_beside);
  model.name = wrapped ? document.at("name").string() : name;
  return model;
}

}  // namespace

Model read_model_config(const std::filesystem::path& file_or_directory) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(file_or_directory, ignored);
  const std::filesystem::path file = is_directory ? file_or_directory / "config.json" : file_or_directory;
  const Json document = read_json_file(file, config_limits);
  const std::filesystem::path beside = file.parent_path() / "hf_quant_config.json";
  if (!std::filesystem::exists(beside, ignored)) {
    return read_document(JsonView(document, file.string()), file_or_directory.string(), std::nullopt);
  }
  const Json quantization = read_json_file(beside, config_limits);
  return read_document(JsonView(document, file.string()), file_or_directory.string(),
                       JsonView(quantization, beside.string()));
}

Model parse_model_config(std::string_view text, const std::string& source, const std::string& name) {
  const Json document = parse_json(text, source, config_limits);
  return read_document(JsonView(document, source), name, std::nullopt);
}

}  // namespace foretoken
