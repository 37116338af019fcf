#include "app/cli/grammar/launch_text.h"

#include <filesystem>

#include "base/file.h"

namespace foretoken {
namespace {

constexpr size_t most_launch_bytes = size_t{1} << 20;

}  // namespace

LaunchLine read_launch_text(const std::string& flag, const std::string& given) {
  const bool is_file = given.starts_with('@');
  const std::string file = is_file ? given.substr(1) : "";
  const std::string text = is_file ? read_file(file, most_launch_bytes) : given;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  const auto beside = [&](const std::string& name) -> std::optional<std::string> {
    const std::filesystem::path path = folder / name;
    std::error_code none;
    if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
    return read_file(path, most_launch_bytes);
  };
  return read_launch_line(text, is_file ? file : flag, beside);
}

}  // namespace foretoken
