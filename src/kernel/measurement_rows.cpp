#include "kernel/measurement_rows.h"

#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "kernel/benchmark_routing.h"
#include "kernel/forms/form.h"
#include "kernel/measurement_format.h"
#include "kernel/operator_table.h"

namespace foretoken {
namespace {

// Why a row that reads well is no measurement of its family; empty if it is one.
std::string_view not_a_kernel(const KernelFamily& family, std::string_view op) {
  if (family.name == "quantize_fp8" && op == "dyn_minus_static") return "a difference of two timings, not a kernel";
  return {};
}

// Our own layout: the columns are the family's parameters and latency_us.
class FamilyRows : public MeasurementRows {
 public:
  explicit FamilyRows(const MeasurementFile& file)
      : family_(*file.family),
        csv_(file.path),
        reader_(family_, csv_),
        measured_(csv_.column("latency_us")),
        op_(csv_.find_column("op")),
        variant_(csv_.find_column("kernel")),
        caches_(csv_.find_column("caches")) {}

  const CsvReader& csv() const override { return csv_; }
  bool next() override { return csv_.next(); }

  std::optional<TableRow> read(std::string& why) override {
    if (op_) {
      if (const std::string_view reason = not_a_kernel(family_, csv_.cell(*op_)); !reason.empty()) {
        why = reason;
        return std::nullopt;
      }
    }
    std::optional<KernelShape> shape = reader_.read_if_expressible(csv_, why);
    if (!shape) return std::nullopt;
    name_.assign(variant_ ? kernel_variant(csv_.cell(*variant_)) : std::string_view());
    if (caches_ && csv_.cell(*caches_) == "cold" && !name_.empty()) name_ += cold_suffix;
    if (auto* experts = std::get_if<MoeShape>(&*shape)) route_as_benchmarked(*experts, name_);
    return TableRow{.shape = *shape, .variant = name_, .microseconds = csv_.number(measured_)};
  }

 private:
  const KernelFamily& family_;
  CsvReader csv_;
  KernelRowReader reader_;
  size_t measured_;
  std::optional<size_t> op_, variant_, caches_;
  std::string name_;
};

// Rows of a tuner's table of experts that repeat the time of another number of tokens: the tuner filled a range with
// one timing. By continuity with their neighbours that of 16 or 1024 tokens is the one that was taken.
std::set<size_t> copied_expert_timings(const std::filesystem::path& path) {
  CsvReader csv(path);
  const size_t tokens = csv.column("tokens");
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> same;  // by all but tokens: row and tokens
  while (csv.next()) {
    std::string key;
    for (size_t column = 0; column < csv.columns().size(); ++column) {
      if (column != tokens) key.append(csv.cell(column)).push_back(',');
    }
    same[key].emplace_back(csv.row(), csv.cell(tokens));
  }
  std::set<size_t> copies;
  for (const auto& [key, rows] : same) {
    if (rows.size() < 2) continue;
    for (const auto& [row, text] : rows) {
      if (text != "16" && text != "1024") copies.insert(row);
    }
  }
  return copies;
}

// The rows of one device and family in a table of operators.
class OperatorRows : public MeasurementRows {
 public:
  explicit OperatorRows(const MeasurementFile& file)
      : device_(file.device_text),
        family_(file.family ? std::string_view(file.family->name) : ""),
        csv_(file.path),
        reader_(*file.table, csv_) {
    if (*file.table == OperatorTableKind::aiter_moe) copies_ = copied_expert_timings(file.path);
  }

  const CsvReader& csv() const override { return csv_; }

  bool next() override {
    while (csv_.next()) {
      if (reader_.device(csv_) == device_ && reader_.family(csv_) == family_) return true;
    }
    return false;
  }

  std::optional<TableRow> read(std::string& why) override {
    if (copies_.contains(csv_.row())) {
      why = "latency_us is that of another number of tokens, copied";
      return std::nullopt;
    }
    std::optional<OperatorRow> row = reader_.read(csv_, why);
    if (!row) return std::nullopt;
    variant_ = std::move(row->variant);
    return TableRow{.shape = std::move(row->shape),
                    .variant = variant_,
                    .copied = row->copied,
                    .microseconds = reader_.measured_us(csv_),
                    .tuned = row->tuned};
  }

 private:
  std::string device_;
  std::string_view family_;
  CsvReader csv_;
  OperatorRowReader reader_;
  std::string variant_;
  std::set<size_t> copies_;  // rows that are no measurements
};

}  // namespace

std::unique_ptr<MeasurementRows> open_rows(const MeasurementFile& file, const ModelCatalogue* models) {
  if (file.format != nullptr) return file.format->open(file.path, models);
  if (file.table) return std::make_unique<OperatorRows>(file);
  ensure(file.family != nullptr, "a file of our own layout has a family");
  return std::make_unique<FamilyRows>(file);
}

}  // namespace foretoken
