#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"

namespace foretoken {
namespace fs = std::filesystem;

struct FileStream::Open {
  gzFile file = nullptr;
  std::string name;
  size_t max_bytes = 0;
  size_t total = 0;

  ~Open() {
    if (file != nullptr) gzclose(file);
  }
};

namespace {

[[noreturn]] void fail(const std::string& name, const std::string& expected, const std::string& value = "") {
  throw InputError({.source = name, .value = value, .expected = expected});
}

void check_is_readable_file(const fs::path& path, size_t max_bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail(path.string(), "a file that exists", "no such file");
  if (status.type() == fs::file_type::directory) fail(path.string(), "a file", "this is a directory");
  if (error) fail(path.string(), "a readable file", error.message());
  // A compressed file over the limit cannot shrink by decompression, so its size alone decides.
  const auto size = fs::file_size(path, error);
  if (!error && size > max_bytes) {
    fail(path.string(), fmt::format("at most {} bytes", max_bytes), fmt::format("{} bytes", size));
  }
}

}  // namespace

FileStream::FileStream(const fs::path& path, size_t max_bytes) {
  check_is_readable_file(path, max_bytes);
  open_ = std::make_unique<Open>();
  open_->name = path.string();
  open_->max_bytes = max_bytes;
  open_->file = gzopen(path.c_str(), "rb");
  if (open_->file == nullptr) fail(open_->name, "a file this user may read", std::generic_category().message(errno));
  gzbuffer(open_->file, 1 << 18);
}

FileStream::~FileStream() = default;
FileStream::FileStream(FileStream&&) noexcept = default;
FileStream& FileStream::operator=(FileStream&&) noexcept = default;

size_t FileStream::read(std::span<char> buffer) {
  constexpr size_t most_at_once = std::numeric_limits<int>::max();
  const int got = gzread(open_->file, buffer.data(), static_cast<unsigned>(std::min(buffer.size(), most_at_once)));
  // zlib hands out what it could decode first and keeps the error (a cut-off stream) for the next look.
  int code = Z_OK;
  std::string_view reason = gzerror(open_->file, &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    const std::string prefix = open_->name + ": ";  // zlib names the file, and so do we
    if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
    fail(open_->name, "a complete plain or gzip file",
         code == Z_BUF_ERROR ? "the gzip stream ends too early" : std::string(reason));
  }
  open_->total += static_cast<size_t>(got);
  if (open_->total > open_->max_bytes) {
    fail(open_->name, fmt::format("at most {} bytes of content", open_->max_bytes), "more than that");
  }
  return static_cast<size_t>(got);
}

std::vector<std::string> file_stems(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> stems;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    std::string_view name = entry.path().native();
    name.remove_prefix(name.rfind('/') + 1);
    if (name.size() > ending.size() && name.ends_with(ending))
      stems.emplace_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

std::vector<uint8_t> read_raw_file(const fs::path& path, size_t max_bytes) {
  check_is_readable_file(path, max_bytes);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  std::vector<uint8_t> bytes(static_cast<size_t>(std::max<std::streamoff>(size, 0)));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) fail(path.string(), "a file this user may read", std::generic_category().message(errno));
  return bytes;
}

std::string read_file(const fs::path& path, size_t max_bytes) {
  // The usual small file at once. A pipe has no size and can be read only once, so it is streamed like a gzip file.
  if (std::error_code ignored; fs::is_regular_file(path, ignored)) {
    const std::vector<uint8_t> raw = read_raw_file(path, max_bytes);
    const bool is_gzip = raw.size() >= 2 && raw[0] == 0x1F && raw[1] == 0x8B;
    if (!is_gzip) return {raw.begin(), raw.end()};
  }
  FileStream stream(path, max_bytes);
  std::string content;
  std::string piece(1 << 16, '\0');
  while (const size_t got = stream.read(piece)) content.append(piece, 0, got);
  return content;
}

void write_file(const fs::path& path, std::string_view content) {
  const char* const expected = "a path that can be written: an existing folder with room and permission";
  if (path.extension() == ".gz") {
    gzFile file = gzopen(path.c_str(), "wb9");
    if (file == nullptr) fail(path.string(), expected);
    const bool whole = gzfwrite(content.data(), 1, content.size(), file) == content.size();
    if (gzclose(file) != Z_OK || !whole) fail(path.string(), expected);
    return;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) fail(path.string(), expected);
}

}  // namespace foretoken
