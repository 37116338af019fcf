// Request traces as others publish them, read row by row: a trace of any length is never held whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/load/lengths.h"
#include "serving/requests/request.h"

namespace foretoken {

enum class TraceClock { none, seconds, milliseconds, date };  // what stands in the arrival column

// The columns of a CSV file, or the keys of JSON Lines. A file's format is the first in the list whose fields it has.
struct TraceFormat {
  std::string_view name;
  std::string_view arrival;  // empty: lengths only
  TraceClock clock;
  std::string_view input, output;
  std::string_view source;  // where such traces come from
};
std::span<const TraceFormat> trace_formats();

// Optional fields of all formats: hash_ids, block_ids_N, prefix_block_ids_N (numbers separated by spaces, or a JSON
// array; one for each N tokens of the prompt, hash_ids N = 512), session, priority, adapter.

struct TraceOptions {
  double time_scale = 1;      // times every arrival: 0.5 = twice the rate
  int64_t max_requests = -1;  // only the first so many; -1 = all
};

// Plain or gzip; the name (before .gz) says which: .jsonl or .json is JSON Lines, all else CSV. InputError with file,
// line and field for a broken row, at whatever depth of the file, and for arrivals that go back in time. Dates count
// from the first row. A row without tokens is passed on: the run counts it as rejected.
std::unique_ptr<RequestSource> open_trace(const std::filesystem::path& file, const TraceOptions& options = {});

// The same from text, for tests and fuzzing.
std::unique_ptr<RequestSource> trace_from_text(std::string text, const std::string& name,
                                               const TraceOptions& options = {});

// Lengths alone, of any trace or table of lengths: at most the first million rows, those without tokens left out.
std::vector<RequestLengths> read_lengths(const std::filesystem::path& file);

}  // namespace foretoken
