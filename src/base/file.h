// Reading files that somebody else wrote: size limits, gzip seen by its magic bytes, errors a person can act on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Streams a plain or gzip file in pieces. Throws InputError for a missing file, a directory, a truncated or broken
// gzip stream, or more than `max_bytes` of content (after decompression).
class FileStream {
 public:
  FileStream(const std::filesystem::path& path, size_t max_bytes);
  ~FileStream();
  FileStream(FileStream&&) noexcept;
  FileStream& operator=(FileStream&&) noexcept;

  // Fills as much of `buffer` as there is content left; 0 at the end.
  size_t read(std::span<char> buffer);

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

// The names of the files in a folder that have this ending, without it, sorted; none when there is no such folder.
std::vector<std::string> file_stems(const std::filesystem::path& folder, std::string_view ending = ".json");

// The bytes of a file as they lie on the disk, compressed or not.
std::vector<uint8_t> read_raw_file(const std::filesystem::path& path, size_t max_bytes);

// The whole content of a plain or gzip file.
std::string read_file(const std::filesystem::path& path, size_t max_bytes);

// Writes (or replaces) a file, compressed if its name ends in .gz; InputError when that fails, e.g. for an --out path
// in a folder that does not exist.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace foretoken
