// Runs with a given bandwidth: against figures that SCALE-Sim printed, and against its published algorithm written out
// with whole matrices.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <vector>

#include "accelerator/systolic/simulate.h"
#include "base/random.h"

namespace foretoken::bandwidth_test {

struct Figures {
  int64_t total = 0, stalls = 0;
  std::array<std::array<int64_t, 3>, 3> dram{};  // inputs, weights, outputs: words, first cycle, last cycle
  bool operator==(const Figures&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Figures& figures) {
  out << figures.total << " cycles, " << figures.stalls << " stalls";
  for (const auto& operand : figures.dram) out << "; " << operand[0] << " " << operand[1] << " " << operand[2];
  return out;
}

Figures figures_of(const SystolicResult& result) {
  Figures figures{.total = result.total_cycles, .stalls = result.stall_cycles};
  const OperandTraffic* operands[] = {&result.inputs, &result.weights, &result.outputs};
  for (size_t i = 0; i < 3; ++i) {
    figures.dram[i] = {operands[i]->dram_words, operands[i]->dram_first_cycle, operands[i]->dram_last_cycle};
  }
  return figures;
}

struct ArrayRun {
  SystolicArray array;
  SystolicLayer layer;
};

// SCALE-Sim v3 (commit 1d62b68), InterfaceBandwidth USER, one layer each: dataflow; rows, columns; height and width of
// the input, of the filter; channels, filters, stride; bytes of the three SRAMs; words per cycle of the three; cycles,
// stalls; DRAM words, first and last cycle of inputs, weights and outputs.
constexpr const char* printed_runs =
    R"(os,16,8,13,14,3,3,8,16,1,4096,1024,1024,8,4,2,5251,3560,28672,-256,3340,20992,-128,5159,2113,1331,5283
ws,4,4,12,13,1,1,8,14,1,1024,1024,1024,2,2,10,2513,1186,5120,-256,2312,128,-64,-1,4368,378,2539
is,4,4,13,9,3,3,8,18,2,4096,1024,1024,8,16,4,3023,0,1728,-216,-1,11776,-32,725,7779,206,3115
os,16,8,10,11,1,1,3,36,2,1024,1024,1024,8,1,32,374,0,144,-18,-1,120,-120,-1,1327,117,383
ws,4,16,6,31,1,31,1,4,1,1024,1024,4096,8,16,8,223,0,192,-24,-1,496,-31,-1,192,223,246
is,16,8,84,90,1,90,1,29,1,2048,2048,1024,4,4,1,22669,18248,91136,-256,22615,78848,-256,19531,14616,948,23145
os,16,8,8,9,1,1,8,10,1,1024,4096,4096,2,16,10,2613,2314,5632,-256,2569,128,-8,-1,720,2613,2684
ws,8,8,28,57,1,57,1,20,1,4096,1024,4096,8,2,1,2191,992,1792,-224,-1,3584,-256,1541,4480,986,4622
is,4,16,6,9,3,3,3,29,1,1024,1024,1024,8,4,1,4679,3966,1024,-64,64,2560,-128,515,5684,67,5242
os,4,16,7,7,3,3,3,17,1,1024,2048,2048,10,8,2,629,0,2080,-52,158,864,-108,-1,425,629,841
ws,16,8,12,8,1,1,8,13,2,1024,1024,1024,2,16,16,145,0,512,-256,-1,128,-8,-1,455,145,173
is,8,8,13,7,3,3,4,7,1,1024,1024,2048,2,16,16,3048,2034,6144,-256,2826,288,-18,-1,1940,1562,3105
os,16,8,80,41,1,41,1,66,1,1024,1024,1024,2,8,10,41062,38228,81920,-256,40862,35328,-64,4419,5280,3118,41076
ws,4,4,30,12,1,12,1,6,1,2048,4096,4096,2,1,1,239,0,360,-180,-1,96,-96,-1,540,239,778
is,8,8,71,20,1,20,1,77,1,1024,2048,1024,8,4,16,6626,3954,12800,-64,1559,26624,-256,6424,16416,82,6651
os,8,8,13,11,1,1,8,23,1,1024,1024,4096,1,16,4,12405,11218,12800,-512,12311,192,-12,-1,3292,7028,12715
ws,4,16,13,61,1,61,1,13,1,2048,1024,1024,32,4,4,559,0,832,-26,-1,1024,-128,128,2713,114,725
is,4,4,12,6,1,1,4,40,1,4096,4096,1024,10,1,1,1799,900,290,-29,-1,160,-160,-1,2880,166,2630
os,4,4,12,11,3,3,4,33,2,4096,1024,1024,4,10,1,3023,0,1152,-288,-1,3640,-52,317,990,1463,3500
ws,16,8,18,82,1,82,1,67,1,4096,2048,1024,4,4,2,11425,8402,1728,-432,-1,44032,-256,10793,7237,212,11614
is,8,8,13,13,3,3,3,24,2,2048,1024,4096,32,32,32,919,0,1024,-32,-1,11264,-16,356,3487,494,963
os,8,8,9,11,3,3,3,12,1,4096,2048,1024,16,1,4,655,0,1728,-108,-1,432,-432,-1,759,357,716
ws,8,8,64,31,1,31,1,39,1,4096,4096,4096,16,4,16,1719,0,2048,-128,-1,1240,-310,-1,9999,359,1831
is,16,8,8,81,1,81,1,39,1,1024,2048,2048,4,16,32,461,0,1024,-128,128,7168,-64,389,1903,276,488
os,4,4,13,9,3,3,3,21,1,1024,1024,1024,8,1,16,3959,0,16896,-64,2079,1024,-512,512,1632,1086,3964
ws,4,16,9,13,1,1,4,15,1,4096,1024,1024,2,4,32,138,0,468,-234,-1,64,-16,-1,1786,48,145
is,4,16,12,9,1,1,3,30,2,1024,4096,4096,2,16,1,155,0,144,-72,-1,128,-8,-1,1050,155,1204
os,16,8,13,11,3,3,8,17,1,1024,1024,1024,8,1,4,16253,14280,99328,-64,12544,15872,-512,15389,1686,5201,16290
ws,4,16,6,68,1,68,1,48,1,1024,1024,4096,4,10,8,3157,1730,408,-102,-1,29640,-52,2967,4903,1231,3257
is,4,16,7,12,1,12,1,31,1,4096,1024,1024,10,4,16,158,0,200,-20,-1,372,-93,-1,666,127,167
os,8,8,70,90,1,90,1,70,1,4096,4096,1024,32,2,8,54688,46265,69632,-64,2144,108544,-1024,53299,4907,923,54725
ws,4,16,14,14,1,1,8,20,2,4096,1024,2048,32,2,10,343,0,512,-16,-1,256,-128,-1,2568,93,394
is,4,16,12,14,1,1,3,36,1,4096,1024,1024,10,8,10,637,0,530,-53,-1,144,-18,-1,6056,47,676
os,4,4,25,72,1,72,1,12,1,4096,4096,4096,4,2,8,1637,0,2016,-504,-1,864,-432,-1,300,1637,1674
ws,16,8,59,71,1,71,1,64,1,2048,1024,1024,8,10,1,18427,14548,67584,-128,8384,92040,-52,9327,18880,716,19386
is,4,16,6,28,1,28,1,8,1,1024,1024,1024,16,4,4,209,0,448,-28,-1,224,-56,-1,336,209,292
)";

TEST(SystolicBandwidth, runs_equal_those_that_scalesim_printed) {
  std::istringstream lines(printed_runs);
  int runs = 0, stalled = 0;
  for (std::string line; std::getline(lines, line); ++runs) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string dataflow;
    fields >> dataflow;
    ArrayRun run;
    run.array.dataflow = find_dataflow(dataflow).value();
    SystolicLayer& layer = run.layer;
    DramWordsPerCycle dram;
    fields >> run.array.rows >> run.array.columns >> layer.input_height >> layer.input_width >> layer.filter_height >>
        layer.filter_width >> layer.channels >> layer.filters >> layer.stride_height >> run.array.input_sram_bytes >>
        run.array.weight_sram_bytes >> run.array.output_sram_bytes >> dram.inputs >> dram.weights >> dram.outputs;
    layer.stride_width = layer.stride_height;
    run.array.dram = dram;
    Figures printed;
    fields >> printed.total >> printed.stalls;
    for (auto& operand : printed.dram) fields >> operand[0] >> operand[1] >> operand[2];
    ASSERT_TRUE(static_cast<bool>(fields)) << line;
    EXPECT_EQ(figures_of(simulate_systolic(run.array, layer)), printed) << line;
    stalled += printed.stalls > 0 ? 1 : 0;
  }
  EXPECT_EQ(runs, 36);
  EXPECT_GE(stalled, 15);
}

using Matrix = std::vector<std::vector<int64_t>>;  // addresses; -1 = nothing is asked for

Matrix empty_matrix(size_t rows, size_t columns) {
  return Matrix(rows, std::vector<int64_t>(columns, -1));
}

// Of a block that starts at (row, column); what lies outside is empty.
Matrix block(const Matrix& from, size_t row, size_t column, size_t rows, size_t columns) {
  Matrix part = empty_matrix(rows, columns);
  for (size_t i = 0; i < rows && row + i < from.size(); ++i) {
    for (size_t j = 0; j < columns && column + j < from[0].size(); ++j) part[i][j] = from[row + i][column + j];
  }
  return part;
}

Matrix transposed(const Matrix& from) {
  Matrix result = empty_matrix(from[0].size(), from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    for (size_t j = 0; j < from[0].size(); ++j) result[j][i] = from[i][j];
  }
  return result;
}

void append(Matrix& to, const Matrix& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Column j starts j rows later, between `before` and `after` empty rows.
Matrix skewed(const Matrix& from, size_t before, size_t after) {
  Matrix result = empty_matrix(before + from.size() + after + from[0].size() - 1, from[0].size());
  for (size_t i = 0; i < from.size(); ++i) {
    for (size_t j = 0; j < from[0].size(); ++j) result[before + i + j][j] = from[i][j];
  }
  return result;
}

std::vector<int64_t> along_diagonals(const Matrix& matrix) {
  std::vector<int64_t> order;
  const size_t rows = matrix.size(), columns = matrix[0].size();
  for (size_t diagonal = 0; diagonal < rows + columns; ++diagonal) {
    for (size_t back = 0; back <= diagonal; ++back) {
      const size_t row = diagonal - back;
      if (row < rows && back < columns) order.push_back(matrix[row][back]);
    }
  }
  return order;
}

std::vector<int64_t> row_by_row(const Matrix& matrix) {
  std::vector<int64_t> order;
  for (const auto& row : matrix) order.insert(order.end(), row.begin(), row.end());
  return order;
}

struct Demand {
  Matrix inputs, weights, outputs;                 // a row per cycle
  std::vector<int64_t> input_order, weight_order;  // of prefetches
};

Demand demand_of(const ArrayRun& run) {
  const SystolicLayer& layer = run.layer;
  const GemmSize gemm = layer.gemm();
  const auto m = static_cast<size_t>(gemm.m), n = static_cast<size_t>(gemm.n), k = static_cast<size_t>(gemm.k);
  Matrix a = empty_matrix(m, k), b = empty_matrix(k, n), c = empty_matrix(m, n);
  for (int64_t i = 0; i < gemm.m; ++i) {
    const int64_t top = i / layer.output_width() * layer.stride_height;
    const int64_t left = i % layer.output_width() * layer.stride_width;
    for (int64_t j = 0; j < gemm.k; ++j) {
      const int64_t channel = j % layer.channels, tap = j / layer.channels;
      const int64_t row = top + tap / layer.filter_width, column = left + tap % layer.filter_width;
      if (row >= layer.input_height || column >= layer.input_width) continue;
      a[static_cast<size_t>(i)][static_cast<size_t>(j)] = (row * layer.input_width + column) * layer.channels + channel;
    }
  }
  for (size_t i = 0; i < k; ++i) {
    for (size_t j = 0; j < n; ++j) b[i][j] = static_cast<int64_t>(j * k + i);
  }
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) c[i][j] = static_cast<int64_t>(i * n + j);
  }

  const auto rows = static_cast<size_t>(run.array.rows), columns = static_cast<size_t>(run.array.columns);
  const auto folds = [](size_t size, size_t lanes) { return (size + lanes - 1) / lanes; };
  Demand demand;
  if (run.array.dataflow == Dataflow::output_stationary) {
    const Matrix at = transposed(a);
    Matrix input_folds, weight_folds;
    for (size_t f = 0; f < folds(m, rows); ++f) append(input_folds, block(at, 0, f * rows, k, rows));
    for (size_t f = 0; f < folds(n, columns); ++f) append(weight_folds, block(b, 0, f * columns, k, columns));
    demand.input_order = along_diagonals(input_folds);
    demand.weight_order = along_diagonals(weight_folds);
    for (size_t fc = 0; fc < folds(n, columns); ++fc) {
      for (size_t fr = 0; fr < folds(m, rows); ++fr) {
        append(demand.inputs, skewed(block(at, 0, fr * rows, k, rows), 0, columns - 1));
        append(demand.weights, skewed(block(b, 0, fc * columns, k, columns), 0, rows - 1));
        // The lowest row of outputs leaves first.
        Matrix outputs = block(c, fr * rows, fc * columns, rows, columns);
        std::reverse(outputs.begin(), outputs.end());
        append(demand.outputs, skewed(outputs, k - 1, 0));
      }
    }
    return demand;
  }
  // Weights or inputs stay: rows x columns of them are loaded first, the lowest row first.
  const bool holds_weights = run.array.dataflow == Dataflow::weight_stationary;
  const Matrix held = holds_weights ? b : transposed(a);
  const Matrix streamed = holds_weights ? a : transposed(b);
  const Matrix results = holds_weights ? c : transposed(c);
  const size_t steps = streamed.size(), depth = k, width = held[0].size();
  Matrix held_folds, streamed_folds;
  for (size_t f = 0; f < folds(width, columns); ++f) append(held_folds, block(held, 0, f * columns, depth, columns));
  for (size_t f = 0; f < folds(depth, rows); ++f) append(streamed_folds, block(streamed, 0, f * rows, steps, rows));
  Matrix held_demand, streamed_demand;
  for (size_t fc = 0; fc < folds(width, columns); ++fc) {
    for (size_t fr = 0; fr < folds(depth, rows); ++fr) {
      Matrix load = block(held, fr * rows, fc * columns, rows, columns);
      std::reverse(load.begin(), load.end());
      append(held_demand, load);
      append(held_demand, empty_matrix(rows + columns + steps - 2, columns));
      append(streamed_demand, skewed(block(streamed, 0, fr * rows, steps, rows), rows, columns - 1));
      append(demand.outputs, skewed(block(results, 0, fc * columns, steps, columns), 2 * rows - 1, 0));
    }
  }
  (holds_weights ? demand.weights : demand.inputs) = held_demand;
  (holds_weights ? demand.inputs : demand.weights) = streamed_demand;
  (holds_weights ? demand.weight_order : demand.input_order) = row_by_row(held_folds);
  (holds_weights ? demand.input_order : demand.weight_order) = along_diagonals(streamed_folds);
  return demand;
}

// A read buffer of sets of addresses; half of them serve the array.
class SetBuffer {
 public:
  SetBuffer(int64_t size, int64_t bandwidth, const std::vector<int64_t>& order) : bandwidth_(bandwidth) {
    half_ = (size + 1) / 2;
    rest_ = size - half_;
    const int64_t per_line = (size + 99) / 100;
    std::set<int64_t> line;
    int64_t count = 0;
    for (const int64_t address : order) {
      if (address < 0) continue;
      line.insert(address);
      if (++count < per_line) continue;
      lines_.push_back(line);
      line.clear();
      count = 0;
    }
    lines_.push_back(line);
    const auto up = [](int64_t x, int64_t y) { return (x + y - 1) / y; };
    const auto lines = static_cast<int64_t>(lines_.size());
    active_ = std::min(lines, up(half_, per_line));
    next_ = std::min(lines - active_, up(rest_, per_line));
    const int64_t first = std::min(up(half_, bandwidth), up(static_cast<int64_t>(order.size()), bandwidth));
    dram = {first * bandwidth, -first, -1};
  }

  // Cycles from asking for the line to having all of it, beyond the one of a hit.
  int64_t read(int64_t cycle, const std::vector<int64_t>& wanted) {
    int64_t offset = 1;
    for (const int64_t address : wanted) {
      if (address < 0) continue;
      while (!holds(address)) {
        start_ = (start_ + next_) % static_cast<int64_t>(lines_.size());
        const int64_t transfers = (rest_ + bandwidth_ - 1) / bandwidth_;
        dram[0] += transfers * bandwidth_;
        dram[2] += transfers + 1;
        const int64_t late = dram[2] - (cycle + offset);
        offset += late;
        if (late > 0) offset += late;
      }
    }
    return offset - 1;
  }

  std::array<int64_t, 3> dram{};

 private:
  bool holds(int64_t address) const {
    for (int64_t i = 0; i < active_; ++i) {
      if (lines_[static_cast<size_t>((start_ + i) % static_cast<int64_t>(lines_.size()))].contains(address))
        return true;
    }
    return false;
  }

  int64_t bandwidth_, half_ = 0, rest_ = 0, active_ = 0, next_ = 0, start_ = 0;
  std::vector<std::set<int64_t>> lines_;
};

// A write buffer that keeps every line until it drains.
class LineBuffer {
 public:
  LineBuffer(int64_t size, int64_t bandwidth) : size_(size), bandwidth_(bandwidth), free_(size) {}

  int64_t write(int64_t cycle, const std::vector<int64_t>& words) {
    int64_t now = cycle;
    for (const int64_t word : words) {
      if (word < 0) continue;
      line_.push_back(word);
      --free_;
      if (static_cast<int64_t>(line_.size()) == bandwidth_) close();
      if (now < drained_at_) {
        if (free_ <= 0) now = drained_at_;
      } else if (free_ < size_ - (size_ - (size_ + 1) / 2)) {
        close();
        drained_at_ = drain(now);
      }
    }
    return now - cycle;
  }

  void finish(int64_t cycle) {
    close();
    while (sent_ < lines_.size()) cycle = drain(cycle) + 1;
  }

  std::array<int64_t, 3> dram{0, 0, 0};

 private:
  void close() {
    if (!line_.empty()) lines_.push_back(line_);
    line_.clear();
  }
  int64_t drain(int64_t cycle) {
    const int64_t half = size_ - (size_ + 1) / 2;
    const size_t end = std::min(lines_.size(), sent_ + static_cast<size_t>((half + bandwidth_ - 1) / bandwidth_));
    const auto count = static_cast<int64_t>(end - sent_);
    const int64_t words = (count - 1) * bandwidth_ + static_cast<int64_t>(lines_[end - 1].size());
    if (sent_ == 0) dram[1] = cycle;
    sent_ = end;
    dram[0] += words;
    free_ += words;
    dram[2] = std::max(dram[2], cycle + count - 1);
    return cycle + count - 1;
  }

  int64_t size_, bandwidth_, free_, drained_at_ = 0;
  std::vector<int64_t> line_;
  std::vector<std::vector<int64_t>> lines_;
  size_t sent_ = 0;
};

Figures oracle(const ArrayRun& run) {
  const Demand demand = demand_of(run);
  SetBuffer inputs(run.array.input_sram_bytes, run.array.dram->inputs, demand.input_order);
  SetBuffer weights(run.array.weight_sram_bytes, run.array.dram->weights, demand.weight_order);
  LineBuffer outputs(run.array.output_sram_bytes, run.array.dram->outputs);
  Figures figures;
  for (size_t i = 0; i < demand.outputs.size(); ++i) {
    const int64_t cycle = static_cast<int64_t>(i) + figures.stalls;
    const int64_t input_wait = inputs.read(cycle, demand.inputs[i]);
    const int64_t weight_wait = weights.read(cycle, demand.weights[i]);
    const int64_t output_wait = outputs.write(cycle, demand.outputs[i]);
    figures.total = std::max(figures.total, cycle + output_wait);
    figures.stalls += std::max({input_wait, weight_wait, output_wait});
  }
  outputs.finish(figures.total);
  figures.dram = {inputs.dram, weights.dram, outputs.dram};
  return figures;
}

TEST(SystolicBandwidth, runs_equal_the_published_algorithm_written_out) {
  RandomStream random(28, "systolic bandwidth");
  const auto size = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  int stalled = 0;
  for (int trial = 0; trial < 60; ++trial) {
    ArrayRun run;
    run.array.dataflow = dataflows[static_cast<size_t>(trial) % dataflows.size()];
    run.array.rows = size(2, 12);
    run.array.columns = size(2, 12);
    run.array.input_sram_bytes = size(100, 1500);
    run.array.weight_sram_bytes = size(100, 1500);
    run.array.output_sram_bytes = size(100, 1500);
    run.array.dram = DramWordsPerCycle{.inputs = size(1, 20), .weights = size(1, 20), .outputs = size(1, 20)};
    if (trial % 2 == 0) {
      run.layer = as_layer({.m = size(1, 60), .n = size(1, 60), .k = size(1, 60)});
    } else {
      const int64_t filter = size(1, 3), stride = size(1, 2);
      run.layer = {.input_height = size(4, 12),
                   .input_width = size(4, 12),
                   .filter_height = filter,
                   .filter_width = filter,
                   .channels = size(1, 6),
                   .filters = size(1, 24),
                   .stride_height = stride,
                   .stride_width = stride};
    }
    const Figures expected = oracle(run);
    EXPECT_EQ(figures_of(simulate_systolic(run.array, run.layer)), expected) << "trial " << trial;
    stalled += expected.stalls > 0 ? 1 : 0;
  }
  EXPECT_GE(stalled, 20);
}

}  // namespace foretoken::bandwidth_test
