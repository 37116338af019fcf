// JSON Lines: one document on each line of a plain or gzip file, read one at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/json.h"

namespace foretoken {

struct JsonLinesLimits {
  size_t max_bytes = size_t{64} << 30;  // after decompression; lines are streamed, so this bounds time, not memory
  size_t max_line_bytes = size_t{4} << 20;
};

class JsonLinesReader {
 public:
  explicit JsonLinesReader(const std::filesystem::path& path, const JsonLinesLimits& limits = {});
  static JsonLinesReader from_text(std::string text, std::string source, const JsonLinesLimits& limits = {});

  // The next document; nothing at the end. Blank lines are skipped. Errors name the line of the file.
  std::optional<Json> next();

  const std::string& source() const { return source_; }
  int line() const { return line_; }  // of the document that next() gave last

 private:
  JsonLinesReader(std::string source, const JsonLinesLimits& limits) : source_(std::move(source)), limits_(limits) {}
  bool read_line();

  std::string source_;
  JsonLinesLimits limits_;
  std::function<size_t(std::span<char>)> read_more_;
  std::string buffer_, text_;
  size_t at_ = 0, filled_ = 0;
  int line_ = 0;
};

}  // namespace foretoken
