#include "serving/engine/launch_words.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "compose/engine_release.h"

namespace foretoken {
namespace {

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

struct EngineModule {
  std::string_view name;
  LaunchStyle style;
};
constexpr EngineModule engine_modules[] = {
    {"vllm.entrypoints.openai.api_server", LaunchStyle::vllm},
    {"vllm.entrypoints.api_server", LaunchStyle::vllm},
    {"vllm.entrypoints.cli.main", LaunchStyle::vllm},
    {"dynamo.vllm", LaunchStyle::vllm},
    {"sglang.launch_server", LaunchStyle::sglang},
    {"dynamo.sglang", LaunchStyle::sglang},
    {"dynamo.trtllm", LaunchStyle::trtllm},
};

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || word.front() == '-') return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

// Public images whose tags are releases of the engine. Those of Dynamo, llm-d and NVIDIA's own vLLM and SGLang have
// releases of their own.
struct EngineImage {
  std::string_view repository;  // the end of its name
  LaunchStyle style;
  std::string_view before{};  // stands before the release in the tag
};
constexpr EngineImage engine_images[] = {
    {"vllm/vllm-openai", LaunchStyle::vllm},     {"vllm/vllm-openai-rocm", LaunchStyle::vllm},
    {"vllm-openai", LaunchStyle::vllm},  // mirrors
    {"rocm/vllm", LaunchStyle::vllm, "vllm_"},   {"rocm/vllm-dev", LaunchStyle::vllm, "vllm_"},
    {"lmsysorg/sglang", LaunchStyle::sglang},    {"lmsysorg/sglang-rocm", LaunchStyle::sglang},
    {"rocm/sgl-dev", LaunchStyle::sglang},       {"tensorrt-llm/release", LaunchStyle::trtllm},
    {"tensorrt-llm/devel", LaunchStyle::trtllm},
};

// With whatever registry before it.
bool names_repository(std::string_view image, std::string_view repository) {
  if (!image.ends_with(repository)) return false;
  return image.size() == repository.size() || image[image.size() - repository.size() - 1] == '/';
}

}  // namespace

bool is_vllm_image(std::string_view image) {
  if (image.empty() || image.find_first_of("=~ ") != std::string_view::npos) return false;
  if (image.front() == '/' || image.front() == '.' || image.front() == '-') return false;
  return image.find("vllm-openai") != std::string_view::npos || image.starts_with("ghcr.io/llm-d/");
}

std::string image_version(std::string_view image, LaunchStyle style) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  if (image.find_first_of("=~ ") != std::string_view::npos || image.empty() || image.front() == '-') return "";
  if (colon == std::string_view::npos || (slash != std::string_view::npos && slash > colon)) return "";
  const std::string_view repository = image.substr(0, colon);
  const auto* const kind = std::find_if(
      std::begin(engine_images), std::end(engine_images),
      [&](const EngineImage& one) { return one.style == style && names_repository(repository, one.repository); });
  if (kind == std::end(engine_images)) return "";
  std::string_view tag = image.substr(colon + 1);
  if (!kind->before.empty()) {
    const size_t place = tag.find(kind->before);
    if (place == std::string_view::npos) return "";
    tag.remove_prefix(place + kind->before.size());
  }
  if (tag.starts_with('v')) tag.remove_prefix(1);
  // Behind the release come the architecture and the CUDA or ROCm that the image was built for.
  tag = tag.substr(0, tag.find_first_of("-_+"));
  constexpr int64_t most_major = 99;  // a date is no release
  const std::optional<ReleaseNumber> number = release_number_from(tag);
  return number && number->major <= most_major ? std::string(tag) : "";
}

std::optional<LaunchWords> find_engine(const std::vector<std::string>& words) {
  LaunchWords found;
  bool by_image = false;
  // Of the last image before a program, if it is one of its engine.
  const auto version_before = [&](LaunchStyle style, size_t place) {
    for (size_t i = place; i-- > 0;) {
      if (std::string version = image_version(words[i], style); !version.empty()) return version;
    }
    return std::string();
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string_view program = base_name(word);
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
    const auto starts = [&](LaunchStyle style, size_t first) {
      found.style = style;
      if (found.version.empty()) found.version = version_before(style, first);
      found.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
      return found;
    };
    if (is_assignment(word)) found.environment.push_back(word);
    if (program == "vllm" && next == "serve") return starts(LaunchStyle::vllm, i + 2);
    if (program == "sglang" && next == "serve") return starts(LaunchStyle::sglang, i + 2);
    if (program == "trtllm-serve") return starts(LaunchStyle::trtllm, next == "serve" ? i + 2 : i + 1);
    for (const EngineModule& module : engine_modules) {
      if (word == "-m" && next == module.name) return starts(module.style, i + 2);
    }
    if (is_vllm_image(word) && !by_image) {
      // Flags alone follow the image, unless a program does.
      by_image = true;
      const LaunchWords by_flags = starts(LaunchStyle::vllm, i + 1);
      const std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      if (std::optional<LaunchWords> inner = find_engine(rest)) {
        if (inner->version.empty()) inner->version = image_version(word, inner->style);
        inner->environment.insert(inner->environment.begin(), found.environment.begin(), found.environment.end());
        return inner;
      }
      return by_flags;
    }
    const bool is_script = (word == "-c" || word == "-lc" || word == "-ec") && next.find(' ') != std::string_view::npos;
    if (!is_script) continue;
    for (const std::vector<std::string>& command : shell_commands(next, "the script behind -c")) {
      std::optional<LaunchWords> inner = find_engine(command);
      if (!inner) continue;
      // Kubernetes hands further words to the script's "$@".
      for (size_t more = i + 2; more < words.size(); ++more) inner->arguments.push_back(words[more]);
      if (inner->version.empty()) inner->version = version_before(inner->style, i);
      inner->environment.insert(inner->environment.begin(), found.environment.begin(), found.environment.end());
      return inner;
    }
  }
  return std::nullopt;
}

bool is_on_other_node(const LaunchWords& words) {
  const std::vector<std::string>& all = words.arguments;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == "--headless") return true;
    if (all[i].starts_with("--node-rank=")) return !all[i].ends_with("=0");
    if (all[i] == "--node-rank" || (all[i] == "-r" && words.style == LaunchStyle::vllm)) {
      return i + 1 < all.size() && all[i + 1] != "0";
    }
  }
  return false;
}

std::vector<std::vector<std::string>> shell_commands(std::string_view script, const std::string& source) {
  std::vector<std::string> pieces(1);
  char quote = '\0';
  for (size_t i = 0; i < script.size(); ++i) {
    const char c = script[i];
    const char next = i + 1 < script.size() ? script[i + 1] : '\0';
    std::string& piece = pieces.back();
    if (c == '\\' && (next == '\n' || next == '\r') && quote != '\'') {
      i += next == '\r' && i + 2 < script.size() && script[i + 2] == '\n' ? 2 : 1;
      piece += ' ';
    } else if (c == '\\' && quote != '\'') {
      piece += c;
      if (next != '\0') piece += script[++i];
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
      piece += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      piece += c;
    } else if (c == '#' && (piece.empty() || piece.back() == ' ' || piece.back() == '\t')) {
      while (i + 1 < script.size() && script[i + 1] != '\n') ++i;
    } else if (c == '\n' || c == ';' || c == '|' || (c == '&' && !piece.ends_with('>'))) {
      pieces.emplace_back();
    } else {
      piece += c == '\r' ? ' ' : c;
    }
  }
  std::vector<std::vector<std::string>> commands;
  for (const std::string& piece : pieces) {
    const std::optional<std::vector<std::string>> words = shell_words(piece);
    if (!words) {
      throw InputError({.source = source, .value = printable(piece), .expected = "a closing quote"});
    }
    std::vector<std::string> kept;
    for (size_t i = 0; i < words->size(); ++i) {
      const std::string& word = (*words)[i];
      const size_t arrow = word.find_first_not_of("0123456789");
      const bool redirects = arrow != std::string::npos && (word[arrow] == '>' || word[arrow] == '<');
      if (!redirects) kept.push_back(word);
      if (redirects && (word.back() == '>' || word.back() == '<')) ++i;  // the file is the next word
    }
    if (!kept.empty()) commands.push_back(std::move(kept));
  }
  return commands;
}

}  // namespace foretoken
