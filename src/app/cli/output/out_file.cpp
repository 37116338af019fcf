#include "app/cli/output/out_file.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/cli/grammar/declarations.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken {

OutFile::OutFile(std::string flag, std::string path, Mode mode) : flag_(std::move(flag)), path_(std::move(path)) {
  if (!wanted()) return;
  file_.open(path_, std::ios::binary | (mode == Mode::append ? std::ios::app : std::ios::trunc));
  if (!file_) {
    throw InputError(
        {.source = flag_, .value = printable(path_), .expected = "a file that can be written, in an existing folder"});
  }
}

void OutFile::close() {
  if (!wanted()) return;
  file_.close();
  if (!file_)
    throw InputError({.source = flag_, .value = printable(path_), .expected = "enough disk space to write all rows"});
}

void remove_if_empty(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) && std::filesystem::is_empty(path, error)) {
    std::filesystem::remove(path, error);
  }
}

void write_report(const std::string& path, std::string_view text) {
  write_file(path, with_flag_names(text));
}

void check_out_folder(const std::string& flag, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path) || access(path.c_str(), W_OK) != 0) {
    throw InputError({.source = flag, .value = printable(path), .expected = "a writable folder"});
  }
}

}  // namespace foretoken
