#include "serving/engine/launch_line.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/yaml_json.h"
#include "serving/engine/launch_flags.h"

namespace foretoken {
namespace {

constexpr size_t most_text = size_t{1} << 20;
constexpr int64_t most_replicas = 100'000;

std::string first_line(std::string_view text) {
  for (const std::string_view line : split(text, "\n")) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') return std::string(line.substr(begin));
  }
  return "";
}

// A launch line never begins with "key:" or "---".
bool is_yaml(std::string_view text) {
  const std::string line = first_line(text);
  if (line.starts_with("---") || line.starts_with("- ") || line.starts_with("{")) return true;
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0) return false;
  const bool ends_key = colon + 1 == line.size() || line[colon + 1] == ' ' || line[colon + 1] == '\r';
  return ends_key && line.substr(0, colon).find(' ') == std::string::npos;
}

// What holds for a place in a file, and all below it.
struct FilePlace {
  int64_t replicas = 1;
  std::string role, model, device;
  std::vector<std::string> words;  // flags that the file gives in a form of its own
  bool has_preset = false;         // KServe starts vLLM in a container that need not say so
};

constexpr const char* preset_flags_variable = "VLLM_ADDITIONAL_ARGS";  // of KServe's preset

class FileReader {
 public:
  FileReader(const std::string& source, const LaunchLookups& lookups, LaunchLine& line)
      : source_(source), lookups_(lookups), line_(line) {}

  std::vector<LaunchedServer> servers;
  std::string device;

  void read(const JsonView& document) {
    FilePlace place;
    if (document.is(Json::Kind::object)) {
      if (const auto artifacts = document.find("modelArtifacts")) place.model = artifact_model(*artifacts);
    }
    keep_files(document);
    const size_t before = servers.size();
    walk(document, place);
    if (servers.size() == before && document.is(Json::Kind::object)) read_flags(document);
  }

 private:
  // llm-d: hf://org/model.
  static std::string artifact_model(const JsonView& artifacts) {
    if (!artifacts.is(Json::Kind::object)) return "";
    const auto uri = artifacts.find("uri");
    if (uri && uri->is(Json::Kind::string) && uri->value().string().starts_with("hf://")) {
      return uri->value().string().substr(5);
    }
    const auto name = artifacts.find("name");
    return name && name->is(Json::Kind::string) ? name->value().string() : "";
  }

  // Files that a Kubernetes ConfigMap or Docker Compose mounts, by their names.
  void keep_files(const JsonView& document) {
    if (!document.is(Json::Kind::object)) return;
    const auto data = document.find("data");
    if (text_at(document, "kind") == "ConfigMap" && data && data->is(Json::Kind::object)) {
      for (const auto& [name, content] : data->members()) {
        if (content.is(Json::Kind::string)) files_[name] = content.value().string();
      }
    }
    const auto configs = document.find("configs");
    if (!configs || !configs->is(Json::Kind::object)) return;
    for (const auto& [name, config] : configs->members()) {
      if (!config.is(Json::Kind::object)) continue;
      if (const auto content = text_at(config, "content")) files_[name] = *content;
    }
  }

  std::optional<std::string> content_of(const std::string& path) const {
    const auto mounted = files_.find(path.substr(path.rfind('/') + 1));
    if (mounted != files_.end()) return mounted->second;
    return lookups_.read_file ? lookups_.read_file(path) : std::nullopt;
  }

  static std::string role_in(std::string_view text) {
    if (contains_ignoring_case(text, "prefill")) return "prefill";
    return contains_ignoring_case(text, "decode") ? "decode" : "";
  }

  static std::vector<std::string> words_of(const JsonView& value, const std::string& source) {
    std::vector<std::string> words;
    if (value.is(Json::Kind::string)) {
      for (const auto& command : shell_commands(value.value().string(), source)) {
        words.insert(words.end(), command.begin(), command.end());
      }
    } else if (value.is(Json::Kind::array)) {
      for (const JsonView& item : value.items()) {
        const Json& word = item.value();
        words.push_back(word.kind() == Json::Kind::string ? word.string() : word.dump(0));
      }
    }
    return words;
  }

  static std::optional<std::string> text_at(const JsonView& map, std::string_view key) {
    const auto value = map.find(key);
    return value && value->is(Json::Kind::string) ? std::optional(value->value().string()) : std::nullopt;
  }

  static void note_labels(const JsonView& map, FilePlace& place) {
    const auto labels = map.find("labels");
    if (!labels || !labels->is(Json::Kind::object)) return;
    if (const auto role = text_at(*labels, "llm-d.ai/role")) place.role = role_in(*role);
    if (const auto device = text_at(*labels, "foretoken-device")) place.device = *device;  // `plan serve` writes it
  }

  // KServe: an LLMInferenceService is the decode pool where it has a prefill pool beside.
  static void note_service(const JsonView& map, FilePlace& place) {
    if (text_at(map, "kind") == "LLMInferenceService") place.has_preset = true;
    if (!place.has_preset) return;
    if (const auto model = map.find("model")) {
      if (const std::string name = artifact_model(*model); !name.empty()) place.model = name;
    }
    if (map.has("prefill") && map.has("template")) place.role = "decode";
  }

  void note_place(const JsonView& map, FilePlace& place) {
    for (const char* key : {"minReplicas", "replicas"}) {
      const auto replicas = map.find(key);
      if (replicas && replicas->is_number()) {
        place.replicas = replicas->integer({.least = 0, .most = most_replicas});
      }
    }
    if (const auto role = text_at(map, "subComponentType")) place.role = role_in(*role);
    if (const auto type = text_at(map, "type"); type && map.has("podTemplate")) place.role = role_in(*type);
    note_service(map, place);
    if (const auto metadata = map.find("metadata"); metadata && metadata->is(Json::Kind::object)) {
      if (const auto name = text_at(*metadata, "name"); name && place.role.empty()) place.role = role_in(*name);
      note_labels(*metadata, place);
    }
    note_labels(map, place);
    if (const auto selector = map.find("nodeSelector"); selector && selector->is(Json::Kind::object)) {
      for (const char* key : {"nvidia.com/gpu.product", "gpu.nvidia.com/model", "cloud.google.com/gke-accelerator"}) {
        if (const auto product = text_at(*selector, key)) place.device = *product;
      }
    }
    // llm-d's charts and KServe give these in place of flags.
    if (const auto sizes = map.find("parallelism"); sizes && sizes->is(Json::Kind::object)) {
      place.words.clear();
      for (const auto& [key, flag] :
           {std::pair("tensor", "--tensor-parallel-size"), std::pair("pipeline", "--pipeline-parallel-size"),
            std::pair("data", "--data-parallel-size")}) {
        const auto size = sizes->find(key);
        if (size && size->is_number()) {
          place.words.insert(place.words.end(), {flag, fmt::format("{}", size->integer({.least = 1}))});
        }
      }
      const auto expert = sizes->find("expert");
      if (expert && expert->is(Json::Kind::boolean) && expert->boolean()) {
        place.words.emplace_back("--enable-expert-parallel");
      }
    }
  }

  void walk(const JsonView& node, FilePlace place) {
    if (node.is(Json::Kind::array)) {
      for (const JsonView& item : node.items()) walk(item, place);
      return;
    }
    if (!node.is(Json::Kind::object)) return;
    note_place(node, place);
    if (const auto created = node.find("create"); created && created->is(Json::Kind::boolean) && !created->boolean()) {
      return;  // llm-d: this pool is off
    }
    if (read_container(node, place)) return;
    const bool has_leader = node.has("leaderTemplate");
    for (const auto& [key, value] : node.members()) {
      if (has_leader && key == "workerTemplate") continue;  // the same server on its other nodes
      if (place.has_preset && (key == "worker" || key == "router")) continue;
      FilePlace below = place;
      if (place.has_preset && key == "prefill") {  // it has its own, or the defaults
        below.words.clear();
        below.replicas = 1;
      }
      if (const std::string role = role_in(key); !role.empty()) below.role = role;
      walk(value, below);
    }
  }

  static bool has_flags(const std::vector<std::string>& words) {
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.starts_with("--model") || word.starts_with("--tensor-parallel-size") || word.starts_with("--tp");
    });
  }

  static std::vector<std::pair<std::string, std::string>> variables_of(const JsonView& container) {
    std::vector<std::pair<std::string, std::string>> variables;
    const auto list = container.find("env");
    if (!list || !list->is(Json::Kind::array)) return variables;
    for (const JsonView& variable : list->items()) {
      if (!variable.is(Json::Kind::object)) continue;
      const auto name = text_at(variable, "name");
      if (name) variables.emplace_back(*name, text_at(variable, "value").value_or(""));
    }
    return variables;
  }

  // Helm charts write the parts of its name apart.
  static std::string image_of(const JsonView& container) {
    if (const auto image = text_at(container, "image")) return *image;
    const auto parts = container.find("image");
    if (!parts || !parts->is(Json::Kind::object)) return "";
    const auto tag = text_at(*parts, "tag");
    return text_at(*parts, "repository").value_or("") + (tag ? ":" + *tag : "");
  }

  bool read_container(const JsonView& container, const FilePlace& place) {
    std::vector<std::string> words;
    for (const char* key : {"entrypoint", "command", "args", "start_command"}) {
      const auto value = container.find(key);
      if (!value) continue;
      const std::vector<std::string> more = words_of(*value, fmt::format("{}: {}", source_, value->path()));
      words.insert(words.end(), more.begin(), more.end());
    }
    std::vector<std::string> environment;
    bool has_preset_flags = false;
    for (const auto& [name, value] : variables_of(container)) {
      if (name != preset_flags_variable) {
        environment.push_back(name + "=" + value);
        continue;
      }
      has_preset_flags = true;
      for (const auto& more : shell_commands(value, fmt::format("{}: {}", source_, container.path()))) {
        words.insert(words.end(), more.begin(), more.end());
      }
    }
    const std::string image = image_of(container);
    const bool is_chart = text_at(container, "modelCommand").value_or("") == "vllmServe";
    std::optional<LaunchWords> found = find_engine(words);
    const bool is_preset = has_preset_flags || (place.has_preset && text_at(container, "name") == "main");
    if (!found &&
        (is_chart || is_preset || (!words.empty() && (is_vllm_image(image) || (image.empty() && has_flags(words)))))) {
      const bool is_sglang = std::any_of(words.begin(), words.end(),
                                         [](const std::string& word) { return word.starts_with("--model-path"); });
      found = LaunchWords{.style = is_sglang ? LaunchStyle::sglang : LaunchStyle::vllm,
                          .arguments = words,
                          .environment = {},
                          .version = {}};
    }
    if (!found) return false;
    if (found->version.empty()) found->version = image_version(image, found->style);
    found->arguments.insert(found->arguments.begin(), place.words.begin(), place.words.end());
    found->environment.insert(found->environment.end(), environment.begin(), environment.end());
    LaunchLookups lookups{.read_file = [&](const std::string& path) { return content_of(path); }};
    if (lookups_.experts_of) {
      lookups.experts_of = [&](const std::string& model) {
        return lookups_.experts_of(model.empty() ? place.model : model);
      };
    }
    LaunchedServer server =
        read_server(*found, fmt::format("{}: {}", source_, container.path()), lookups, line_.remarks);
    if (server.fields.find("model") == nullptr && !place.model.empty()) server.fields.set("model", place.model);
    if (server.role.empty()) server.role = place.role;
    server.replicas = place.replicas;
    if (!place.device.empty()) device = place.device;
    if (server.replicas > 0) servers.push_back(std::move(server));
    return true;
  }

  // A file of flags alone, as vLLM's --config takes it.
  void read_flags(const JsonView& document) {
    LaunchWords words;
    size_t known = 0;
    for (const LaunchStyle style : {LaunchStyle::vllm, LaunchStyle::sglang, LaunchStyle::trtllm}) {
      size_t of_style = 0;
      for (const auto& [key, value] : document.members()) of_style += find_launch_flag(style, "--" + key) != nullptr;
      if (of_style > known) words.style = style;
      known = std::max(known, of_style);
    }
    if (known == 0) return;
    words.arguments = {"--config", source_};
    const std::string text = document.value().dump();
    const LaunchLookups lookups{.read_file = [&](const std::string&) { return std::optional(text); },
                                .experts_of = lookups_.experts_of};
    servers.push_back(read_server(words, source_, lookups, line_.remarks));
  }

  const std::string& source_;
  const LaunchLookups& lookups_;
  LaunchLine& line_;
  std::map<std::string, std::string> files_;
};

// One for each server of a script: lines for the other nodes of a server say the same again.
std::vector<LaunchWords> started_engines(std::string_view script, const std::string& source) {
  std::vector<LaunchWords> first_nodes, other_nodes;
  for (const std::vector<std::string>& words : shell_commands(script, source)) {
    std::optional<LaunchWords> found = find_engine(words);
    if (found) (is_on_other_node(*found) ? other_nodes : first_nodes).push_back(std::move(*found));
  }
  return first_nodes.empty() ? other_nodes : first_nodes;
}

// Fields that all servers have alike stand for all; the rest is said of each kind.
Json merged_fields(const std::vector<LaunchedServer>& servers, LaunchRemarks& remarks) {
  const auto of_role = [&](std::string_view role) {
    return std::any_of(servers.begin(), servers.end(), [&](const LaunchedServer& one) { return one.role == role; });
  };
  const bool pools = of_role("prefill") && of_role("decode");
  if (!pools && (of_role("prefill"))) {
    remarks.not_simulated.push_back(
        "prefill workers without decode workers: they serve whole requests in the simulation");
  }
  Json common = Json::object();
  for (const auto& [key, value] : servers.front().fields.members()) {
    const std::string text = value.dump(0);
    const bool is_common = std::all_of(servers.begin(), servers.end(), [&, &key = key](const LaunchedServer& one) {
      const Json* other = one.fields.find(key);
      return other != nullptr && other->dump(0) == text;
    });
    if (is_common) common.set(key, value);
  }
  struct Kind {
    std::string role;
    Json settings;
    int64_t count;
  };
  std::vector<Kind> kinds;
  for (const LaunchedServer& server : servers) {
    Json own = Json::object();
    for (const auto& [key, value] : server.fields.members()) {
      if (common.find(key) == nullptr) own.set(key, value);
    }
    const std::string role = pools ? server.role : "";
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return kind.role == role && kind.settings.dump(0) == own.dump(0);
    });
    if (same == kinds.end()) {
      kinds.push_back({.role = role, .settings = std::move(own), .count = server.replicas});
    } else {
      same->count += server.replicas;
    }
  }
  const auto with_count = [](const Kind& kind) {
    Json settings = Json::object({{"count", kind.count}});
    for (const auto& [key, value] : kind.settings.members()) settings.set(key, value);
    return settings;
  };
  if (pools) {
    for (const Kind& kind : kinds) {
      const std::string field = kind.role == "decode" ? "decode_pool" : "prefill_pool";
      if (kind.role.empty() || common.find(field) != nullptr) {
        remarks.not_simulated.push_back("servers of a third kind besides one prefill and one decode pool");
      } else {
        common.set(field, with_count(kind));
      }
    }
  } else if (kinds.size() == 1) {
    if (kinds.front().count > 1) common.set("replicas", kinds.front().count);
  } else {
    Json list = Json::array();
    for (const Kind& kind : kinds) list.push(with_count(kind));
    common.set("replica", std::move(list));
  }
  return common;
}

// Each once, in the order in which they came.
void keep_first(std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::string& word : words) {
    if (std::find(kept.begin(), kept.end(), word) == kept.end()) kept.push_back(std::move(word));
  }
  words = std::move(kept);
}

}  // namespace

LaunchLine read_launch_line(std::string_view text, const std::string& source, const ReadLaunchFile& read_file,
                            const ExpertsOfModel& experts_of) {
  const LaunchLookups lookups{.read_file = read_file, .experts_of = experts_of};
  if (text.size() > most_text) {
    throw InputError({.source = source, .value = fmt::format("{} bytes", text.size()), .expected = "at most 1 MiB"});
  }
  LaunchLine line;
  std::vector<LaunchedServer> servers;
  std::string device;
  if (is_yaml(text)) {
    FileReader reader(source, lookups, line);
    std::string document;
    const auto end_document = [&] {
      const Json json = json_of_yaml(parse_yaml(document, source), source);
      reader.read(JsonView(json, source));
    };
    for (const std::string_view row : split(text, "\n")) {
      if (!row.starts_with("---")) {
        document.append(row).append("\n");
        continue;
      }
      end_document();
      // Blank lines in place of what was read keep the numbers of lines.
      const auto lines = static_cast<size_t>(std::count(document.begin(), document.end(), '\n'));
      document.assign(lines + 1, '\n');
    }
    end_document();
    servers = std::move(reader.servers);
    device = reader.device;
  } else {
    for (const LaunchWords& words : started_engines(text, source)) {
      servers.push_back(read_server(words, source, lookups, line.remarks));
    }
  }
  if (servers.empty()) {
    throw InputError({.source = source,
                      .value = printable(first_line(text)),
                      .expected =
                          "a command that starts vLLM, SGLang or TensorRT-LLM (vllm serve MODEL, python -m "
                          "sglang.launch_server, trtllm-serve MODEL, docker run), or a YAML file that contains one"});
  }
  line.fields = merged_fields(servers, line.remarks);
  if (!device.empty()) line.fields.set("device", device);
  keep_first(line.remarks.without_effect);
  keep_first(line.remarks.not_simulated);
  keep_first(line.remarks.unknown);
  return line;
}

}  // namespace foretoken
