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
constexpr std::array<std::string_view, 13> pipeline = {"base",    "hardware", "model",   "kernel",   "accelerator",
                                                       "network", "library",  "compose", "training", "serving",
                                                       "plan",    "report",   "app"};
constexpr std::array<std::string_view, 5> heavy_headers = {"CLI/", "Eigen/", "nlohmann/", "pybind11/", "yaml-cpp/"};
constexpr int most_readme_lines = 15;

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

std::vector<Include> includes_of(const fs::path& path) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">].*)");
  std::vector<Include> includes;
  std::istringstream in(text_of(path));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, pattern)) includes.push_back({number, match[1] == "\"", match[2]});
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
std::map<std::string, std::set<std::string>> used_folders(const fs::path& cmake_lists) {
  static const std::regex call(R"(foretoken_folder\(\s*(\w+)([^)]*)\))");
  std::map<std::string, std::set<std::string>> used;
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

// Names of constants and types, and functions with their parameters, at the top of unnamed namespaces.
std::vector<std::string> unnamed_names(const fs::path& path) {
  static const std::regex constant(R"((?:constexpr|const) [\w:<>, *&]+? (\w+)(?:\[[^\]]*\])?(?: = |\{|\().*)");
  static const std::regex type(R"((?:class|struct|enum class|using) (\w+)[ ;].*)");
  static const std::regex function(R"([\w:<>,& *]+ (\w+\(.*))");
  std::vector<std::string> names;
  std::istringstream in(text_of(path));
  std::string line;
  bool inside = false;
  while (std::getline(in, line)) {
    if (line == "namespace {") inside = true;
    if (line.starts_with("}  // namespace")) inside = false;
    if (!inside || line.starts_with(" ") || line.starts_with("using namespace")) continue;
    std::smatch match;
    for (const std::regex* kind : {&constant, &type, &function}) {
      if (!std::regex_match(line, match, *kind)) continue;
      names.push_back(match[1]);
      break;
    }
  }
  return names;
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
        if (extension == ".h" || extension == ".cpp") check_includes(folder, file.path());
        if (extension == ".h" || extension == ".cpp") check_instruction_sets(file.path());
      }
      check_unnamed(folder);
    }
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
      const bool apart = fs::exists(file.path().parent_path() / "list.cpp");
      if (name.ends_with(".cpp") && !name.ends_with("_test.cpp") && !apart) files.insert(file.path());
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

  void check_includes(const std::string& folder, const fs::path& file) {
    const std::string name = fs::relative(file, src_).generic_string();
    for (const Include& include : includes_of(file)) {
      const std::string where = fmt::format("{}:{}", name, include.line);
      const bool heavy = std::any_of(heavy_headers.begin(), heavy_headers.end(),
                                     [&](std::string_view prefix) { return include.path.starts_with(prefix); });
      if (heavy && file.extension() == ".h") report(where, fmt::format("<{}> belongs in a .cpp file", include.path));
      if (include.quoted) check_direction(folder, where, include.path);
    }
  }

  void check_instruction_sets(const fs::path& file) {
    static const std::regex pattern(R"re("(sm_\d*|gfx[0-9a-f]*)")re");
    const std::string name = fs::relative(file, src_).generic_string(), own = file.filename().string();
    if (name == "hardware/generation.cpp" || own.ends_with("_test.cpp") || own.starts_with("test_")) return;
    std::istringstream in(text_of(file));
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      const std::string code = line.substr(0, line.find("//"));
      std::smatch match;
      if (!std::regex_search(code, match, pattern)) continue;
      report(fmt::format("{}:{}", name, number),
             fmt::format("{}: only hardware/generation.cpp reads instruction sets", match[0].str()));
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
  std::map<std::string, std::set<std::string>> used_;
  std::vector<std::string> breaches_;
};

}  // namespace

std::vector<std::string> breaches(const fs::path& root) {
  return Checker(root).check();
}

}  // namespace foretoken::layout
