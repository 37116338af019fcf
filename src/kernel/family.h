// A kernel family as users see it: what it is called, and which parameters describe one call. A parameter's name is the
// CSV column and, with dashes, the command-line flag; the command line, --help and validate are all made from this
// list.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "base/range.h"
#include "model/shapes.h"

namespace foretoken {

enum class ParameterKind { integer, number, choice };

struct KernelParameter {
  std::string name;
  ParameterKind kind = ParameterKind::integer;
  std::string help;
  std::optional<std::string> fallback;  // used when not given; nothing = required
  std::string example;                  // a typical value, for help and tests
  Range<double> range{1, 1e9};          // integer, number
  std::vector<std::string> choices;     // choice: listed in help; the value is the index here
  // choice: reads further spellings, and whatever is not an index; nothing = not a valid value
  std::optional<double> (*parse)(std::string_view) = nullptr;
  std::string further;  // choice: values beyond `choices`, for errors: "plA for A up to 10"
};

// Two values that are each in range but cannot stand together.
struct Misfit {
  size_t parameter = 0;
  std::string expected;
};

// One number per parameter, in the order of the list.
using KernelValues = std::span<const double>;

struct KernelFamily {
  std::string name;
  std::string summary;
  std::vector<KernelParameter> parameters;
  KernelShape (*shape)(KernelValues values) = nullptr;
  std::optional<Misfit> (*misfit)(KernelValues values) = nullptr;  // optional
};

// All families, in the order of the documentation; families/list.cpp.
std::span<const KernelFamily> kernel_families();

std::vector<std::string> kernel_family_names();
const KernelFamily* find_kernel_family(std::string_view name);
// InputError with the nearest name when there is none; `where` is the field or file that named it.
const KernelFamily& kernel_family(std::string_view name, InputProblem where);

// The implementation that a `kernel` column or flag names; empty where it names none: "any", or only a part of a layer
// ("recurrence", "convolution").
std::string_view kernel_variant(std::string_view text);

// A shape from (parameter, text) as users write them. InputError names the parameter as a field.
KernelShape shape_from_texts(const KernelFamily& family,
                             std::span<const std::pair<std::string, std::string>> name_and_text);

// Reads the rows of one CSV file; columns are looked up once. A column that looks like a misspelt parameter is an
// InputError; others (latency_us, notes) are left alone.
class KernelRowReader {
 public:
  KernelRowReader(const KernelFamily& family, const CsvReader& csv);

  // The shape of the current row; InputError with file, row, column, value, expectation.
  KernelShape read(const CsvReader& csv);

  // The same, but a row that is well formed and cannot be expressed (an unknown dtype, sizes that do not fit together)
  // gives nothing and the reason in `why`. Broken numbers are an InputError still.
  std::optional<KernelShape> read_if_expressible(const CsvReader& csv, std::string& why);

 private:
  struct Column {
    std::optional<size_t> index;  // nothing: the fallback, already in values_
    std::string last_text;        // choices repeat from row to row
    bool seen = false;
  };
  const KernelFamily* family_;
  std::vector<Column> columns_;
  std::vector<double> values_;
};

}  // namespace foretoken
