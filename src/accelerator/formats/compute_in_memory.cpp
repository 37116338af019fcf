#include "accelerator/formats/compute_in_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace foretoken {
namespace {

struct CellArray {
  std::string name;
  int64_t rows = 1, columns = 1;
  int64_t cell_bits = 1, weight_bits = 8, input_bits = 8, input_bits_per_step = 1;
  int64_t converter_bits = 8, columns_per_converter = 1;
  double conversions_per_second = 0, step_ns = 0;
  std::optional<double> conversion_pj;
  double row_pj = 0, cell_pj = 0, column_pj = 0, write_pj = 0;

  int64_t slices() const { return (weight_bits + cell_bits - 1) / cell_bits; }
  int64_t steps() const { return (input_bits + input_bits_per_step - 1) / input_bits_per_step; }
  int64_t weights_across() const { return columns / slices(); }
};

CellArray read_cell_array(const JsonView& view) {
  view.allow_only({"name", "inside", "kind", "grid", "rows", "columns", "cell_bits", "weight_bits", "input_bits",
                   "input_bits_per_step", "converter", "step_ns", "row_pj", "cell_pj", "column_pj", "write_pj",
                   "note"});
  constexpr Range<int64_t> sides{.least = 1, .most = 1 << 20}, bits{.least = 1, .most = 64};
  // Times steps and columns of 64 bits each, what a level may take.
  constexpr Range<double> energies{.least = 0, .most = 1e8};
  const auto whole = [](const JsonView& from, std::string_view key, Range<int64_t> allowed, int64_t& value) {
    if (const auto found = from.find(key)) value = found->integer(allowed);
  };
  const auto number = [](const JsonView& from, std::string_view key, Range<double> allowed, double& value) {
    if (const auto found = from.find(key)) value = found->number(allowed);
  };
  CellArray own{.name = view.at("name").string(),
                .rows = view.at("rows").integer(sides),
                .columns = view.at("columns").integer(sides)};
  whole(view, "cell_bits", bits, own.cell_bits);
  whole(view, "weight_bits", bits, own.weight_bits);
  whole(view, "input_bits", bits, own.input_bits);
  whole(view, "input_bits_per_step", bits, own.input_bits_per_step);
  number(view, "step_ns", {.least = 0, .most = 1e9}, own.step_ns);
  for (const auto& [key, value] : {std::pair{"row_pj", &own.row_pj},
                                   {"cell_pj", &own.cell_pj},
                                   {"column_pj", &own.column_pj},
                                   {"write_pj", &own.write_pj}}) {
    number(view, key, energies, *value);
  }
  const JsonView converter = view.at("converter");
  converter.allow_only({"bits", "columns_each", "conversions_per_second", "conversion_pj"});
  own.converter_bits = converter.at("bits").integer({.least = 1, .most = 24});
  whole(converter, "columns_each", sides, own.columns_per_converter);
  own.conversions_per_second = converter.at("conversions_per_second").number({.least = 1, .most = 1e15});
  if (const auto pj = converter.find("conversion_pj")) own.conversion_pj = pj->number(energies);
  if (own.weights_across() < 1) {
    view.at("columns").fail(fmt::format("at least {}, the columns that one weight takes", own.slices()));
  }
  return own;
}

}  // namespace

std::vector<CellArrayLevel> compute_in_memory_levels(const JsonView& view, double clock_hz) {
  const CellArray own = read_cell_array(view);
  const auto steps = static_cast<double>(own.steps()), slices = static_cast<double>(own.slices());
  const double reading_ns = static_cast<double>(own.columns_per_converter) / own.conversions_per_second * 1e9;
  const double cycles = steps * std::max(own.step_ns, reading_ns) * 1e-9 * clock_hz;
  if (!operation_cycle_bounds.holds(cycles)) {
    view.fail(fmt::format("step_ns, converter and clock_ghz that give {} of cycles for an operation, not {}",
                          range_text(operation_cycle_bounds), number_text(cycles)));
  }
  const auto weight_word = static_cast<int>(own.weight_bits);
  const auto input_word = static_cast<int>(own.input_bits);

  CellArrayLevel drivers{.tensors = {.keep = {"inputs"}, .spread = {"output_channels"}}};
  drivers.level = {.name = own.name + "_drivers",
                   .word_bits = input_word,
                   .depth = 2 * own.rows,
                   .buffers = 2,
                   .energy = {.read_pj = steps * own.row_pj}};

  CellArrayLevel columns{.tensors = {.keep = {"outputs"}, .spread = {"reduced"}}, .across = own.weights_across()};
  columns.level = {.name = own.name + "_columns", .component = "adc", .word_bits = 32, .depth = 2, .buffers = 2};
  columns.level.converter = {.bits = static_cast<int>(own.converter_bits),
                             .conversions = steps * slices,
                             .conversions_per_second = own.conversions_per_second,
                             .extra_pj = own.column_pj};
  columns.has_energy = own.conversion_pj.has_value();
  columns.level.energy.update_pj = steps * slices * (own.conversion_pj.value_or(0) + own.column_pj);

  CellArrayLevel cells{.tensors = {.keep = {"weights"}}, .down = own.rows};
  cells.level = {
      .name = own.name + "_cells",
      .word_bits = weight_word,
      .depth = 1,
      .energy = {.read_pj = steps * slices * own.cell_pj, .fill_pj = own.write_pj, .update_pj = own.write_pj}};

  CellArrayLevel multipliers;
  multipliers.level = {.name = own.name,
                       .kind = LevelKind::compute,
                       .component = "intmac",
                       .word_bits = std::max(weight_word, input_word),
                       .operation_cycles = cycles};
  return {std::move(drivers), std::move(columns), std::move(cells), std::move(multipliers)};
}

}  // namespace foretoken
