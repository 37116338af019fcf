// The rows of a trace file, whether CSV or JSON Lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {

class TraceRows {
 public:
  virtual ~TraceRows() = default;

  // Field names: of the header, or of the first document.
  virtual std::vector<std::string> names() const = 0;
  // A handle for the calls below, valid for all rows; the name need not be there.
  virtual size_t field(std::string_view name) = 0;

  virtual bool next() = 0;                        // false at the end; InputError for a broken row
  virtual bool is_given(size_t field) const = 0;  // in this row, and not empty
  virtual std::string text(size_t field) const = 0;
  virtual double number(size_t field, Range<double> allowed) const = 0;
  virtual int64_t integer(size_t field, Range<int64_t> allowed) const = 0;
  virtual void integers(size_t field, std::vector<int64_t>& into) const = 0;
  [[noreturn]] virtual void fail(size_t field, std::string expected) const = 0;  // about this row
  virtual InputError format_error(std::string expected) const = 0;               // about the whole file
};

std::unique_ptr<TraceRows> open_trace_rows(const std::filesystem::path& file);
std::unique_ptr<TraceRows> trace_rows_from_text(std::string text, const std::string& name);

}  // namespace foretoken
