#include "layout.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace foretoken::layout {
namespace {

namespace fs = std::filesystem;

// Top to bottom: a folder may use only folders before it.
constexpr std::array<std::string_view, 14> pipeline = {"base",    "hardware", "model",   "kernel",   "accelerator",
                                                       "network", "library",  "compose", "training", "serving",
                                                       "plan",    "validate", "report",  "app"};
constexpr std::array<std::string_view, 5> heavy_headers = {"CLI/", "Eigen/", "nlohmann/", "pybind11/", "yaml-cpp/"};
constexpr int most_readme_lines = 15;
// They read and write flags of other programs, and variables of style sheets.
constexpr std::array<std::string_view, 15> foreign_flags = {"plan/megatron_flags.cpp",
                                                            "plan/training_launchers/axolotl.cpp",
                                                            "plan/training_launchers/megatron_lm.cpp",
                                                            "plan/training_launchers/torchtune.cpp",
                                                            "plan/serving/launch_command.cpp",
                                                            "plan/serving/launch_files/compose.cpp",
                                                            "plan/serving/launch_files/dynamo.cpp",
                                                            "plan/serving/launch_files/kserve.cpp",
                                                            "plan/serving/launch_files/launch_file.cpp",
                                                            "plan/serving/launch_files/llm_d.cpp",
                                                            "serving/engine/launch_flags.cpp",
                                                            "serving/engine/launch_line.cpp",
                                                            "serving/engine/launch_words.cpp",
                                                            "serving/engine/launched_server.cpp",
                                                            "report/drawing/html_page.cpp"};

// They read the names of engines in measurements.
constexpr std::array<std::string_view, 2> readers_of_engines = {"app/cli/flags/run_flags.cpp",
                                                                "validate/serving/serving_case.cpp"};

using Graph = std::map<std::string, std::set<std::string>>;

struct Include {
  int line;
  bool quoted;
  std::string path;
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("cannot read {}", path.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

bool is_test(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with("_test.cpp") || name.starts_with("test_");
}

struct Text {
  int line;
  std::string inside;  // of its quotes
};

// Texts in the code of a file, without those in comments.
std::vector<Text> texts_of(const fs::path& path) {
  std::vector<Text> texts;
  std::istringstream in(text_of(path));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string_view code = std::string_view(line).substr(0, line.find("//"));
    for (size_t open = code.find('"'); open != std::string_view::npos;) {
      size_t close = open + 1;
      while (close < code.size() && code[close] != '"') close += code[close] == '\\' ? 2 : 1;
      if (close >= code.size()) break;
      texts.push_back({number, std::string(code.substr(open + 1, close - open - 1))});
      open = code.find('"', close + 1);
    }
  }
  return texts;
}

std::vector<Include> includes_of(const fs::path& path) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">].*)");
  std::vector<Include> includes;
  std::istringstream in(text_of(path));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (line.find('#') != std::string::npos && std::regex_match(line, match, pattern))
      includes.push_back({number, match[1] == "\"", match[2]});
  }
  return includes;
}

std::optional<size_t> stage(std::string_view folder) {
  const auto* const found = std::find(pipeline.begin(), pipeline.end(), folder);
  if (found == pipeline.end()) return std::nullopt;
  return static_cast<size_t>(found - pipeline.begin());
}

// What each folder's CMake target may include: the folders it names after USES, and theirs. The pipeline lists a folder
// after those it uses, so one pass is enough.
Graph used_folders(const fs::path& cmake_lists) {
  static const std::regex call(R"(foretoken_folder\(\s*(\w+)([^)]*)\))");
  Graph used;
  const std::string text = text_of(cmake_lists);
  for (auto match = std::sregex_iterator(text.begin(), text.end(), call); match != std::sregex_iterator(); ++match) {
    std::set<std::string>& folders = used[(*match)[1]];
    std::istringstream words((*match)[2]);
    std::string word;
    bool in_uses = false;
    while (words >> word) {
      if (word == "USES" || word == "LINKS" || word == "HEADERS_OF") {
        in_uses = word == "USES";
      } else if (in_uses) {
        folders.insert(word);
        folders.insert(used[word].begin(), used[word].end());
      }
    }
  }
  return used;
}

// Names of constants and types, and functions with their parameters, at the top of unnamed namespaces; with the named
// namespaces around them.
std::vector<std::string> unnamed_names(const fs::path& path) {
  static const std::regex opened(R"(namespace ([\w:]+) \{)");
  static const std::regex constant(R"((?:constexpr|const) [\w:<>, *&]+? (\w+)(?:\[[^\]]*\])?(?: = |\{|\().*)");
  static const std::regex type(R"((?:class|struct|enum class) (\w+)[ ;].*)");
  static const std::regex function(R"([\w:<>,& *]+ (\w+\(.*))");
  std::vector<std::string> names;
  std::istringstream in(text_of(path));
  std::string line, around;
  bool inside = false;
  while (std::getline(in, line)) {
    std::smatch match;
    if (line.starts_with("namespace ") && std::regex_match(line, match, opened)) around += match[1].str() + "::";
    if (line == "namespace {") inside = true;
    if (line.starts_with("}  // namespace")) {
      if (!inside) around.resize(around.size() - std::min(around.size(), line.size() - line.rfind(' ') + 1));
      inside = false;
    }
    if (!inside || line.starts_with(" ") || line.starts_with("using namespace")) continue;
    for (const std::regex* kind : {&constant, &type, &function}) {
      if (!std::regex_match(line, match, *kind)) continue;
      names.push_back(around + match[1].str());
      break;
    }
  }
  return names;
}

// Types that a header defines, with their namespaces: "foretoken::Device".
std::vector<std::string> types_of(const fs::path& path) {
  static const std::regex opened(R"(namespace ([\w:]+) \{)");
  static const std::regex type(R"((?:class|struct|enum class|enum|union) (\w+)(?: final)?(?: :.*)?(?: \{.*)?)");
  static const std::regex alias(R"(using (\w+) = .*)");
  std::vector<std::string> types, namespaces;
  std::istringstream in(text_of(path));
  std::string line;
  constexpr std::string_view first_words[] = {"}  // ", "namespace ", "class ", "struct ", "enum ", "union ", "using "};
  while (std::getline(in, line)) {
    if (std::none_of(std::begin(first_words), std::end(first_words),
                     [&](std::string_view word) { return line.starts_with(word); })) {
      continue;
    }
    if (line.starts_with("}  // namespace") && !namespaces.empty()) namespaces.pop_back();
    line = line.substr(0, line.find("//"));
    line.resize(line.find_last_not_of(' ') + 1);
    std::smatch match;
    if (std::regex_match(line, match, opened)) namespaces.push_back(match[1]);
    if (!std::regex_match(line, match, type) && !std::regex_match(line, match, alias)) continue;
    types.push_back(fmt::format("{}::{}", fmt::join(namespaces, "::"), match[1].str()));
  }
  return types;
}

// Groups of nodes that can all reach each other, each sorted (Tarjan 1972).
class Circles {
 public:
  explicit Circles(const Graph& graph) : graph_(graph) {
    for (const auto& [node, targets] : graph) {
      if (!seen_.contains(node)) visit(node);
    }
  }
  std::vector<std::vector<std::string>> found() && { return std::move(found_); }

 private:
  struct Seen {
    size_t number, lowest;
    bool open;
  };

  void visit(const std::string& node) {
    const size_t number = seen_.size();
    seen_[node] = {.number = number, .lowest = number, .open = true};
    stack_.push_back(node);
    if (const auto targets = graph_.find(node); targets != graph_.end()) {
      for (const std::string& target : targets->second) {
        if (!seen_.contains(target)) visit(target);
        if (seen_[target].open) seen_[node].lowest = std::min(seen_[node].lowest, seen_[target].lowest);
      }
    }
    if (seen_[node].lowest != number) return;
    std::vector<std::string> circle;
    do {
      circle.push_back(stack_.back());
      seen_[circle.back()].open = false;
      stack_.pop_back();
    } while (circle.back() != node);
    std::sort(circle.begin(), circle.end());
    if (circle.size() > 1) found_.push_back(std::move(circle));
  }

  const Graph& graph_;
  std::map<std::string, Seen> seen_;
  std::vector<std::string> stack_;
  std::vector<std::vector<std::string>> found_;
};

// A header and its source are one part, with the private header of both: serving/x.h, x.cpp and x_internal.h.
std::string part_of(const std::string& path) {
  constexpr std::string_view internal = "_internal";
  std::string part = path.substr(0, path.rfind('.'));
  if (part.ends_with(internal)) part.resize(part.size() - internal.size());
  return part;
}

class Checker {
 public:
  explicit Checker(const fs::path& root) : src_(root / "src"), used_(used_folders(root / "CMakeLists.txt")) {}

  std::vector<std::string> check() {
    for (const fs::directory_entry& entry : fs::directory_iterator(src_)) {
      if (!entry.is_directory()) continue;
      const std::string folder = entry.path().filename().string();
      if (!stage(folder)) {
        report(folder, "not a folder of the pipeline");
        continue;
      }
      check_readme(folder);
      for (const fs::directory_entry& file : fs::recursive_directory_iterator(entry.path())) {
        const std::string extension = file.path().extension().string();
        if (extension != ".h" && extension != ".cpp") continue;
        check_includes(folder, file.path());
        if (is_test(file.path())) continue;
        check_instruction_sets(file.path());
        if (folder != "app") check_flags(file.path());
        check_engines(file.path());
        check_math(file.path());
      }
      check_unnamed(folder);
    }
    check_circles();
    check_types();
    std::sort(breaches_.begin(), breaches_.end());
    return std::move(breaches_);
  }

 private:
  void report(std::string_view where, std::string_view what) {
    breaches_.push_back(fmt::format("src/{}: {}", where, what));
  }

  void check_readme(const std::string& folder) {
    const fs::path readme = src_ / folder / "README.md";
    if (!fs::exists(readme)) {
      report(folder, "no README.md");
      return;
    }
    const std::string text = text_of(readme);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (lines > most_readme_lines) {
      report(folder + "/README.md", fmt::format("{} lines; at most {}", lines, most_readme_lines));
    }
  }

  void check_unnamed(const std::string& folder) {
    std::set<fs::path> files;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(src_ / folder)) {
      const std::string name = file.path().filename().string();
      if (name.ends_with(".cpp") && !name.ends_with("_test.cpp")) files.insert(file.path());
    }
    std::map<std::string, std::string> first;
    for (const fs::path& file : files) {
      const std::string name = fs::relative(file, src_).generic_string();
      for (const std::string& unnamed : unnamed_names(file)) {
        const auto [known, is_new] = first.emplace(unnamed, name);
        if (!is_new && known->second != name) report(name, fmt::format("{} is in src/{} too", unnamed, known->second));
      }
    }
  }

  void check_types() {
    std::set<fs::path> headers;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(src_)) {
      if (file.path().extension() == ".h") headers.insert(file.path());
    }
    std::map<std::string, std::string> first;
    for (const fs::path& header : headers) {
      const std::string name = fs::relative(header, src_).generic_string();
      for (const std::string& type : types_of(header)) {
        const auto [known, is_new] = first.emplace(type, name);
        if (!is_new) report(name, fmt::format("{} is in src/{} too", type, known->second));
      }
    }
  }

  // Of parts and of subfolders inside a folder: between folders the pipeline rules them out. Where a kind needs its
  // contract and the contract lists the kinds, x_kind.h declares the list and kinds/list.cpp defines it.
  void check_circles() {
    for (const auto& [what, graph] : {std::pair("files", &parts_), std::pair("folders", &subfolders_)}) {
      for (const std::vector<std::string>& circle : Circles(*graph).found()) {
        const std::string folder = circle.front().substr(0, circle.front().find('/'));
        report(folder, fmt::format("{} that include each other: {}", what, fmt::join(circle, ", ")));
      }
    }
  }

  void note_arrow(const std::string& from, const std::string& to) {
    const auto stage_of = [](const std::string& path) { return path.substr(0, path.find('/')); };
    if (stage_of(from) != stage_of(to)) return;  // which way is check_direction's business
    if (part_of(from) != part_of(to)) parts_[part_of(from)].insert(part_of(to));
    const std::string folder = from.substr(0, from.rfind('/')), other = to.substr(0, to.rfind('/'));
    if (folder != other) subfolders_[folder].insert(other);
  }

  void check_includes(const std::string& folder, const fs::path& file) {
    const std::string name = fs::relative(file, src_).generic_string();
    const bool product = !name.ends_with("_test.cpp");
    for (const Include& include : includes_of(file)) {
      const std::string where = fmt::format("{}:{}", name, include.line);
      const bool heavy = std::any_of(heavy_headers.begin(), heavy_headers.end(),
                                     [&](std::string_view prefix) { return include.path.starts_with(prefix); });
      if (heavy && file.extension() == ".h") report(where, fmt::format("<{}> belongs in a .cpp file", include.path));
      if (include.quoted) check_direction(folder, where, include.path);
      if (include.quoted && product) note_arrow(name, include.path);
    }
  }

  void check_instruction_sets(const fs::path& file) {
    static const std::regex pattern("sm_\\d*|gfx[0-9a-f]*");
    const std::string name = fs::relative(file, src_).generic_string();
    if (name == "hardware/generation.cpp") return;
    for (const Text& text : texts_of(file)) {
      if (!text.inside.starts_with("sm_") && !text.inside.starts_with("gfx")) continue;
      if (!std::regex_match(text.inside, pattern)) continue;
      report(fmt::format("{}:{}", name, text.line),
             fmt::format("\"{}\": only hardware/generation.cpp reads instruction sets", text.inside));
    }
  }

  void check_flags(const fs::path& file) {
    static const std::regex pattern(R"((?:^|[^\w-])(--[a-z][a-z0-9-]*))");
    const std::string name = fs::relative(file, src_).generic_string();
    if (std::find(foreign_flags.begin(), foreign_flags.end(), name) != foreign_flags.end()) return;
    for (const Text& text : texts_of(file)) {
      std::smatch match;
      if (text.inside.find("--") == std::string::npos || !std::regex_search(text.inside, match, pattern)) continue;
      report(fmt::format("{}:{}", name, text.line),
             fmt::format("{}: only app/ names flags; name the field", match[1].str()));
    }
  }

  void check_engines(const fs::path& file) {
    static const std::regex pattern(
        R"re((?:\w*engine\w*(?:\(\w*\))?(?:\.name|\.family)?|release(?:\.|->)family) [=!]= "([^"]+)")re");
    const std::string name = fs::relative(file, src_).generic_string();
    if (std::find(readers_of_engines.begin(), readers_of_engines.end(), name) != readers_of_engines.end()) return;
    std::istringstream in(text_of(file));
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch match;
      if (line.find("= \"") == std::string::npos || !std::regex_search(line, match, pattern)) continue;
      report(fmt::format("{}:{}", name, number),
             fmt::format("\"{}\": ask the engine's kind what it does, not for its name", match[1].str()));
    }
  }

  // std::atan2 is left for drawings, which round it.
  void check_math(const fs::path& file) {
    static const std::regex pattern(
        R"(\bstd::(exp2?|expm1|log|log2|log10|log1p|pow|hypot|cbrt|erfc?|[lt]gamma|a?(sin|cos|tan)h?)\()");
    const std::string name = fs::relative(file, src_).generic_string();
    std::istringstream in(text_of(file));
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch match;
      if (line.find("std::") == std::string::npos || !std::regex_search(line, match, pattern)) continue;
      report(fmt::format("{}:{}", name, number),
             fmt::format("std::{} differs between machines; use base/portable_math.h", match[1].str()));
    }
  }

  void check_direction(const std::string& folder, const std::string& where, const std::string& path) {
    const std::string target = path.substr(0, path.find('/'));
    if (!stage(target) || path.find("..") != std::string::npos) {
      report(where, fmt::format("\"{}\" does not name a file from src/ on", path));
      return;
    }
    if (!fs::exists(src_ / path)) report(where, fmt::format("\"{}\" does not exist", path));
    if (target == folder) return;
    if (*stage(target) > *stage(folder)) {
      report(where, fmt::format("\"{}\" points down the pipeline: {} may not use {}", path, folder, target));
    } else if (folder != "app" && !used_[folder].contains(target)) {
      report(where, fmt::format("\"{}\": the CMake target of {} does not use {}", path, folder, target));
    }
  }

  fs::path src_;
  Graph used_, parts_, subfolders_;
  std::vector<std::string> breaches_;
};

}  // namespace

std::vector<std::string> breaches(const fs::path& root) {
  return Checker(root).check();
}

}  // namespace foretoken::layout
