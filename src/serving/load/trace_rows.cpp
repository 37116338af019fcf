#include "serving/load/trace_rows.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/json_lines.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t absent = static_cast<size_t>(-1);

class CsvRows : public TraceRows {
 public:
  explicit CsvRows(CsvReader csv) : csv_(std::move(csv)) {}

  std::vector<std::string> names() const override { return csv_.columns(); }
  size_t field(std::string_view name) override { return csv_.find_column(name).value_or(absent); }
  bool next() override { return csv_.next(); }
  bool is_given(size_t field) const override { return field != absent && !csv_.cell(field).empty(); }
  std::string text(size_t field) const override { return std::string(csv_.cell(field)); }
  double number(size_t field, Range<double> allowed) const override { return csv_.number(field, allowed); }
  int64_t integer(size_t field, Range<int64_t> allowed) const override { return csv_.integer(field, allowed); }

  void integers(size_t field, std::vector<int64_t>& into) const override {
    const std::string_view cell = csv_.cell(field);
    for (size_t begin = 0; begin < cell.size();) {
      const size_t end = std::min(cell.find(' ', begin), cell.size());
      const std::optional<int64_t> value = parse_integer(cell.substr(begin, end - begin));
      if (!value) csv_.fail(field, "whole numbers separated by single spaces");
      into.push_back(*value);
      begin = end + 1;
    }
  }

  void fail(size_t field, std::string expected) const override { csv_.fail(field, std::move(expected)); }
  InputError format_error(std::string expected) const override {
    return InputError({.source = csv_.source(),
                       .line = 1,
                       .path = "header",
                       .value = printable(fmt::format("{}", fmt::join(csv_.columns(), ","))),
                       .expected = std::move(expected)});
  }

 private:
  CsvReader csv_;
};

class JsonRows : public TraceRows {
 public:
  explicit JsonRows(JsonLinesReader lines) : lines_(std::move(lines)), document_(lines_.next()) {
    if (!document_) throw InputError({.source = lines_.source(), .value = "an empty file", .expected = "JSON Lines"});
    check_is_object();
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, value] : document_->members()) names.push_back(name);
    return names;
  }
  size_t field(std::string_view name) override {
    fields_.emplace_back(name);
    return fields_.size() - 1;
  }
  bool next() override {
    if (!std::exchange(first_is_next_, false)) {
      document_ = lines_.next();
      if (document_) check_is_object();
    }
    return document_.has_value();
  }
  bool is_given(size_t field) const override { return view().has(fields_[field]); }
  std::string text(size_t field) const override {
    return located([&] { return at(field).string(); });
  }
  double number(size_t field, Range<double> allowed) const override {
    return located([&] { return at(field).number(allowed); });
  }
  int64_t integer(size_t field, Range<int64_t> allowed) const override {
    return located([&] { return at(field).integer(allowed); });
  }
  void integers(size_t field, std::vector<int64_t>& into) const override {
    located([&] {
      for (const JsonView& item : at(field).items()) into.push_back(item.integer());
      return 0;
    });
  }

  void fail(size_t field, std::string expected) const override {
    throw InputError({.source = lines_.source(),
                      .line = lines_.line(),
                      .path = fields_[field],
                      .value = printable(at(field).value().dump(0)),
                      .expected = std::move(expected)});
  }
  InputError format_error(std::string expected) const override {
    return InputError({.source = lines_.source(),
                       .line = lines_.line(),
                       .value = printable(fmt::format("{}", fmt::join(names(), ","))),
                       .expected = std::move(expected)});
  }

 private:
  JsonView view() const { return JsonView(*document_, lines_.source()); }
  JsonView at(size_t field) const { return view().at(fields_[field]); }
  void check_is_object() const {
    if (document_->kind() != Json::Kind::object) {
      throw InputError({.source = lines_.source(),
                        .line = lines_.line(),
                        .value = std::string(kind_name(document_->kind())),
                        .expected = "one JSON object per line, one line per request"});
    }
  }
  // A document knows only the lines inside it: complaints get the line of the file.
  template <class Read>
  std::invoke_result_t<const Read&> located(const Read& read) const {
    try {
      return read();
    } catch (const InputError& error) {
      InputProblem problem = error.problem();
      problem.line = lines_.line();
      throw InputError(problem);
    }
  }

  JsonLinesReader lines_;
  std::optional<Json> document_;
  bool first_is_next_ = true;
  std::vector<std::string> fields_;
};

bool is_json_lines(const std::filesystem::path& file) {
  const std::string name = lower_case(file.filename().string());
  const std::string_view plain = std::string_view(name).substr(0, name.size() - (name.ends_with(".gz") ? 3 : 0));
  return plain.ends_with(".jsonl") || plain.ends_with(".json");
}

}  // namespace

std::unique_ptr<TraceRows> open_trace_rows(const std::filesystem::path& file) {
  if (is_json_lines(file)) return std::make_unique<JsonRows>(JsonLinesReader(file));
  return std::make_unique<CsvRows>(CsvReader(file, {.max_bytes = size_t{64} << 30}));
}

std::unique_ptr<TraceRows> trace_rows_from_text(std::string text, const std::string& name) {
  if (is_json_lines(name)) return std::make_unique<JsonRows>(JsonLinesReader::from_text(std::move(text), name));
  return std::make_unique<CsvRows>(CsvReader::from_text(std::move(text), name));
}

}  // namespace foretoken
