#include "library/facts_digest.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

std::string named_digest(const fs::path& name, const fs::path& file) {
  constexpr size_t most_bytes = size_t{1} << 30;
  return fmt::format("{} {:016x}\n", name.generic_string(), digest(read_raw_file(file, most_bytes)));
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string facts_digest(const Library& library, std::span<const fs::path> own_files) {
  std::string all;
  for (const fs::path& file : files_below(library.directory())) {
    all += named_digest(file.lexically_relative(library.directory()), file);
  }
  for (const char* kind : {"hardware", "kernels"}) {  // of the user's own devices
    const fs::path folder = library.own() / kind;
    if (library.own().empty() || !fs::is_directory(folder)) continue;
    for (const fs::path& file : files_below(folder)) all += named_digest(file.lexically_relative(library.own()), file);
  }
  if (const fs::path folder = library.calibrations(); folder != library.directory() / "kernels" / "calibrations") {
    for (const fs::path& file : files_below(folder)) all += named_digest(file.lexically_relative(folder), file);
  }
  for (const fs::path& own : own_files) {
    if (fs::is_regular_file(own)) all += named_digest(own, own);
    for (const std::string& stem : file_stems(own)) all += named_digest(own / stem, own / (stem + ".json"));
  }
  return fmt::format("foretoken {} {:016x}", FORETOKEN_VERSION, digest(all));
}

}  // namespace foretoken
