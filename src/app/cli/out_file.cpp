#include "app/cli/out_file.h"

#include <utility>

#include "base/error.h"

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
  if (!file_) throw InputError({.source = flag_, .value = printable(path_), .expected = "room to write all rows"});
}

}  // namespace foretoken
