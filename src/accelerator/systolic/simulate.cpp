#include "accelerator/systolic/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "accelerator/systolic/buffers.h"
#include "accelerator/systolic/operands.h"
#include "base/error.h"

namespace foretoken {
namespace {

// SCALE-Sim's own figure for the load before the array starts, where no bandwidth is given.
constexpr int64_t fill_words_per_cycle = 10;

// Of the operand with the most. Lanes without work count: they take up room in the order of prefetches.
double largest_trace_words(const SystolicArray& array, const SystolicLayer& layer, const SystolicCompute& compute) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const SystolicProjection shape = project(array.dataflow, layer.gemm());
  const double row_lanes = real(compute.row_folds) * real(array.rows);
  const double column_lanes = real(compute.column_folds) * real(array.columns);
  return std::max({real(compute.input_reads), real(compute.weight_reads), real(compute.output_writes),
                   real(layer.input_height * layer.input_width) * real(layer.channels), row_lanes * real(shape.steps),
                   column_lanes * real(std::max(shape.steps, shape.rows))});
}

bool trace_fits(double words, const SystolicCompute& compute) {
  return words <= static_cast<double>(largest_systolic_trace) && compute.cycles <= largest_systolic_trace;
}

void check_trace(const SystolicArray& array, const SystolicLayer& layer, const SystolicCompute& compute) {
  const double words = largest_trace_words(array, layer, compute);
  if (!trace_fits(words, compute)) {
    throw InputError(
        {.path = "layer",
         .value = fmt::format("{:.3g} words of one operand in {} cycles", words, compute.cycles),
         .expected = fmt::format("at most {} of each; cycles alone have no such limit", largest_systolic_trace)});
  }
  for (const int64_t bytes : {array.input_sram_bytes, array.weight_sram_bytes, array.output_sram_bytes}) {
    if (bytes / array.word_bytes < 100) {
      throw InputError({.path = "array.sram",
                        .value = fmt::format("{} words", bytes / array.word_bytes),
                        .expected = "at least 100 words, of which a hundredth is the unit of transfer"});
    }
  }
}

// Lanes of a stream in one cycle: lane l takes its step cycle - l, for steps in [0, steps).
template <class Visit>
void visit_stream(int64_t cycle, int64_t steps, int64_t lanes, Visit visit) {
  const int64_t last = std::min(lanes - 1, cycle);
  for (int64_t lane = std::max<int64_t>(0, cycle - steps + 1); lane <= last; ++lane) visit(lane, cycle - lane);
}

int64_t stream_width(int64_t cycle, int64_t steps, int64_t lanes) {
  return std::max<int64_t>(0, std::min(lanes - 1, cycle) - std::max<int64_t>(0, cycle - steps + 1) + 1);
}

// One operand that is read: its SRAM, and when the array last and first asked it for a word.
class OperandReader {
 public:
  explicit OperandReader(std::unique_ptr<ReadBuffer> buffer) : buffer_(std::move(buffer)) {}

  void start_cycle(int64_t cycle) {
    cycle_ = cycle;
    wait_ = 0;
    any_in_cycle_ = false;
  }
  void read(int64_t address) {
    if (address < 0) return;
    wait_ += buffer_->read(cycle_, wait_, address);
    any_in_cycle_ = true;
  }
  // Cycles that the array waits; words are there one cycle after the SRAM was asked.
  int64_t end_cycle() {
    if (any_in_cycle_) {
      const int64_t served = cycle_ + wait_ + 1;
      if (first_cycle_ < 0) first_cycle_ = served;
      last_cycle_ = served;
    }
    return wait_;
  }
  OperandTraffic traffic(int64_t sram_words) {
    const DramTraffic dram = buffer_->finish();
    return {.sram_words = sram_words,
            .sram_first_cycle = std::max<int64_t>(0, first_cycle_),
            .sram_last_cycle = last_cycle_,
            .dram_words = dram.words,
            .dram_first_cycle = dram.first_cycle,
            .dram_last_cycle = dram.last_cycle};
  }

 private:
  std::unique_ptr<ReadBuffer> buffer_;
  int64_t cycle_ = 0;
  int64_t wait_ = 0;
  bool any_in_cycle_ = false;
  int64_t first_cycle_ = -1;
  int64_t last_cycle_ = 0;
};

std::unique_ptr<ReadBuffer> make_read_buffer(int64_t sram_words, int64_t addresses, std::optional<int64_t> bandwidth,
                                             const PrefetchOrder& order, LateWords late_words) {
  if (!bandwidth) return std::make_unique<UnlimitedReadBuffer>(sram_words, addresses, fill_words_per_cycle);
  return std::make_unique<PrefetchingReadBuffer>(sram_words, addresses, *bandwidth, order(), late_words);
}

class LayerRun {
 public:
  LayerRun(const SystolicArray& array, const SystolicLayer& layer, const GemmSize& gemm, LateWords late_words)
      : array_(array),
        operands_(layer),
        shape_(project(array.dataflow, gemm)),
        inputs_(make_read_buffer(
            array.input_sram_bytes / array.word_bytes, operands_.input_addresses(),
            array.dram ? std::optional(array.dram->inputs) : std::nullopt,
            [&] { return input_prefetch_order(array_, shape_, operands_); }, late_words)),
        weights_(make_read_buffer(
            array.weight_sram_bytes / array.word_bytes, operands_.weight_addresses(),
            array.dram ? std::optional(array.dram->weights) : std::nullopt,
            [&] { return weight_prefetch_order(array_, shape_, operands_); }, late_words)),
        outputs_(array.output_sram_bytes / array.word_bytes, array.dram ? array.dram->outputs : array.columns) {}

  SystolicResult run(const SystolicCompute& compute) {
    for (int64_t column_fold = 0; column_fold < compute.column_folds; ++column_fold) {
      for (int64_t row_fold = 0; row_fold < compute.row_folds; ++row_fold) run_fold(row_fold, column_fold);
    }
    SystolicResult result{.compute = compute, .total_cycles = last_served_, .stall_cycles = stalls_};
    result.inputs = inputs_.traffic(compute.input_reads);
    result.weights = weights_.traffic(compute.weight_reads);
    const DramTraffic written = outputs_.finish(last_served_);
    result.outputs = {.sram_words = compute.output_writes,
                      .sram_first_cycle = std::max<int64_t>(0, first_output_),
                      .sram_last_cycle = last_output_,
                      .dram_words = written.words,
                      .dram_first_cycle = written.first_cycle,
                      .dram_last_cycle = written.last_cycle};
    return result;
  }

 private:
  void run_fold(int64_t row_fold, int64_t column_fold) {
    fold_row_ = row_fold * array_.rows;
    fold_column_ = column_fold * array_.columns;
    rows_used_ = std::min(array_.rows, shape_.rows - fold_row_);
    columns_used_ = std::min(array_.columns, shape_.columns - fold_column_);
    const int64_t cycles = fold_cycles(array_, shape_.steps);
    for (int64_t cycle = 0; cycle < cycles; ++cycle) run_cycle(cycle);
  }

  // All of the array waits for whichever operand is late.
  void run_cycle(int64_t cycle_of_fold) {
    const int64_t now = next_cycle_ + stalls_;
    ++next_cycle_;
    inputs_.start_cycle(now);
    weights_.start_cycle(now);
    read_operands(cycle_of_fold);
    const int64_t read_wait = std::max(inputs_.end_cycle(), weights_.end_cycle());
    const int64_t written = words_written(cycle_of_fold);
    const int64_t write_wait = outputs_.write(now, written);
    last_served_ = now + write_wait;
    if (written > 0) {
      if (first_output_ < 0) first_output_ = last_served_;
      last_output_ = last_served_;
    }
    stalls_ += std::max(read_wait, write_wait);
  }

  void read_operands(int64_t cycle) {
    switch (array_.dataflow) {
      case Dataflow::output_stationary:
        visit_stream(cycle, shape_.steps, rows_used_, [&](int64_t lane, int64_t step) {
          inputs_.read(operands_.input_address(fold_row_ + lane, step));
        });
        visit_stream(cycle, shape_.steps, columns_used_, [&](int64_t lane, int64_t step) {
          weights_.read(operands_.weight_address(step, fold_column_ + lane));
        });
        return;
      case Dataflow::weight_stationary:
        visit_held(cycle, [&](int64_t row, int64_t column) { weights_.read(operands_.weight_address(row, column)); });
        visit_stream(cycle - array_.rows, shape_.steps, rows_used_, [&](int64_t lane, int64_t step) {
          inputs_.read(operands_.input_address(step, fold_row_ + lane));
        });
        return;
      case Dataflow::input_stationary:
        visit_held(cycle, [&](int64_t row, int64_t column) { inputs_.read(operands_.input_address(column, row)); });
        visit_stream(cycle - array_.rows, shape_.steps, rows_used_, [&](int64_t lane, int64_t step) {
          weights_.read(operands_.weight_address(fold_row_ + lane, step));
        });
        return;
    }
  }

  // What stays is loaded row by row, the lowest first.
  template <class Visit>
  void visit_held(int64_t cycle, Visit visit) {
    const int64_t row = array_.rows - 1 - cycle;
    if (row < 0 || row >= rows_used_) return;
    for (int64_t column = 0; column < columns_used_; ++column) visit(fold_row_ + row, fold_column_ + column);
  }

  int64_t words_written(int64_t cycle) const {
    if (array_.dataflow == Dataflow::output_stationary) {
      // Outputs leave through the lower edge, so rows without work come first.
      const int64_t first = shape_.steps - 1 + array_.rows - rows_used_;
      return stream_width(cycle - first, rows_used_, columns_used_);
    }
    return stream_width(cycle - (2 * array_.rows - 1), shape_.steps, columns_used_);
  }

  const SystolicArray& array_;
  const OperandAddresses operands_;
  const SystolicProjection shape_;
  OperandReader inputs_;
  OperandReader weights_;
  WriteBuffer outputs_;
  int64_t fold_row_ = 0;
  int64_t fold_column_ = 0;
  int64_t rows_used_ = 0;
  int64_t columns_used_ = 0;
  int64_t next_cycle_ = 0;
  int64_t stalls_ = 0;
  int64_t last_served_ = 0;
  int64_t first_output_ = -1;
  int64_t last_output_ = 0;
};

void fill_rates(OperandTraffic& operand, int64_t cycles) {
  operand.sram_words_per_cycle =
      static_cast<double>(operand.sram_words) / static_cast<double>(std::max<int64_t>(1, cycles));
  const int64_t dram_cycles = operand.dram_last_cycle - operand.dram_first_cycle + 1;
  operand.dram_words_per_cycle = static_cast<double>(operand.dram_words) / static_cast<double>(dram_cycles);
}

}  // namespace

bool systolic_trace_fits(const SystolicArray& array, const SystolicLayer& layer) {
  check_layer(layer);
  const SystolicCompute compute = systolic_compute(array, layer.gemm());
  return trace_fits(largest_trace_words(array, layer, compute), compute);
}

SystolicResult simulate_systolic(const SystolicArray& array, const SystolicLayer& layer) {
  check_layer(layer);
  const GemmSize gemm = layer.gemm();
  const SystolicCompute compute = systolic_compute(array, gemm);
  check_trace(array, layer, compute);
  SystolicResult result = LayerRun(array, layer, gemm, LateWords::as_scalesim).run(compute);
  // Without a bandwidth only outputs wait, and those count once either way.
  result.physical_stall_cycles =
      array.dram ? LayerRun(array, layer, gemm, LateWords::physical).run(compute).stall_cycles : result.stall_cycles;

  const double cells = static_cast<double>(array.rows) * static_cast<double>(array.columns);
  const double macs = static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  result.overall_utilisation = macs / (static_cast<double>(std::max<int64_t>(1, result.total_cycles)) * cells);
  result.total_cycles_with_prefetch =
      result.outputs.dram_last_cycle - std::min(result.inputs.dram_first_cycle, result.weights.dram_first_cycle);
  for (OperandTraffic* operand : {&result.inputs, &result.weights, &result.outputs}) {
    fill_rates(*operand, result.total_cycles);
  }
  return result;
}

}  // namespace foretoken
