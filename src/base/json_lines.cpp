#include "base/json_lines.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 16;

}  // namespace

JsonLinesReader::JsonLinesReader(const std::filesystem::path& path, const JsonLinesLimits& limits)
    : JsonLinesReader(path.string(), limits) {
  auto stream = std::make_shared<FileStream>(path, limits.max_bytes);  // std::function wants copyable captures
  read_more_ = [stream](std::span<char> piece) { return stream->read(piece); };
  buffer_.resize(buffer_bytes);
}

JsonLinesReader JsonLinesReader::from_text(std::string text, std::string source, const JsonLinesLimits& limits) {
  JsonLinesReader reader(std::move(source), limits);
  reader.buffer_ = std::move(text);
  reader.filled_ = reader.buffer_.size();
  reader.read_more_ = [](std::span<char>) { return size_t{0}; };
  return reader;
}

bool JsonLinesReader::read_line() {
  text_.clear();
  bool any = false;
  for (;;) {
    if (at_ == filled_) {
      filled_ = read_more_(buffer_);
      at_ = 0;
      if (filled_ == 0) break;
    }
    any = true;
    const char* begin = buffer_.data() + at_;
    const char* end = buffer_.data() + filled_;
    const char* stop = std::find(begin, end, '\n');
    text_.append(begin, stop);
    if (text_.size() > limits_.max_line_bytes) {
      throw InputError(
          {.source = source_,
           .line = line_ + 1,
           .value = "a line that is too long",
           .expected = fmt::format("one JSON document per line, of at most {} bytes each", limits_.max_line_bytes)});
    }
    at_ += static_cast<size_t>(stop - begin);
    if (stop == end) continue;
    ++at_;
    break;
  }
  if (any) ++line_;
  return any;
}

std::optional<Json> JsonLinesReader::next() {
  while (read_line()) {
    if (text_.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      return parse_json(text_, source_);
    } catch (const InputError& error) {
      InputProblem problem = error.problem();
      problem.line = line_;
      throw InputError(problem);
    }
  }
  return std::nullopt;
}

}  // namespace foretoken
