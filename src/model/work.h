// Exact FLOPs and least bytes of a kernel: what any implementation must do. The roofline and every learned efficiency
// stand on these counts.
#pragma once

#include "base/number_format.h"
#include "base/units.h"
#include "model/shapes.h"

namespace foretoken {

struct Work {
  Flops flops;               // multiply-add counts two
  DType math = DType::bf16;  // whose peak bounds the FLOPs
  Bytes weights_read;        // parameters
  Bytes activations_read;    // everything else read, the KV cache included
  Bytes written;

  Bytes bytes() const { return weights_read + activations_read + written; }
};

// The work of one call. A collective has none: its bytes travel on links.
Work count_work(const KernelShape& shape);

// Query-key pairs that causal and window masks leave, summed over the queries of ONE sequence and head. Without a
// causal mask a window reaches as far ahead as back.
double attended_pairs(const AttentionShape& shape);

// Positions a convolution or pooling window takes along one side: floor((size + 2 padding - dilation (kernel-1) -
// 1)/stride) + 1.
int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation);

// Rows (or columns) of a sparse matrix that hold a nonzero at all, of `lines` that share `nonzeros`: the expectation
// where each nonzero falls by the pattern. In a `power` pattern the busiest x of all lines hold x^0.4 of the nonzeros.
inline constexpr double busiest_share_exponent = 0.4;
double touched_lines(double lines, double nonzeros, SparsePattern pattern);
// Nonzeros of the longest row that the pattern makes one expect.
double expected_longest_row(double rows, double columns, double nonzeros, SparsePattern pattern);

// Expected experts of one rank that get at least one token, and (token, expert) pairs it computes (the most
// loaded rank's, unless all are loaded alike).
struct ExpertLoad {
  double active_experts = 0;
  double pairs = 0;
};
ExpertLoad expert_load(const MoeShape& shape);

}  // namespace foretoken
