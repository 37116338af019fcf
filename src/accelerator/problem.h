// One operator as a loop nest: dimensions with sizes, and tensors indexed by sums of dimensions times constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Limits of the evaluator, which works without allocation.
constexpr int max_problem_dimensions = 16;
constexpr int max_problem_tensors = 8;
constexpr int max_tensor_ranks = 10;
constexpr int max_rank_terms = 4;
constexpr int64_t max_dimension_size = int64_t{1} << 40;

struct ProjectionTerm {
  int dimension = 0;        // index into Problem::dimensions
  int64_t coefficient = 1;  // stride or dilation
};

struct ProblemTensor {
  std::string name;
  // Each rank's index is the sum of its terms: `2 p + r` for the rows of a convolution's input at stride 2.
  std::vector<std::vector<ProjectionTerm>> ranks;
  bool written = false;  // accumulated into, rather than only read
  // Bits of one element, scales of its block included; 0 = a word of whatever level holds it.
  double bits = 0;
  double outside_bits = 0;  // in the outermost memory, where it is converted on its way in; 0 = the same
  double sum_bits = 0;      // of a written tensor's elements until they are complete; 0 = the same
};

struct ProblemDimension {
  std::string name;
  int64_t size = 1;
};

struct Problem {
  std::string name;
  std::vector<ProblemDimension> dimensions;
  std::vector<ProblemTensor> tensors;
};

// Nothing when the problem can be evaluated; else what is wrong with it.
std::string problem_fault(const Problem& problem);

double operations(const Problem& problem);                                 // multiply-accumulates
double tensor_words(const ProblemTensor& tensor, const Problem& problem);  // of its bounding box
int find_dimension(const Problem& problem, std::string_view name);         // -1 when there is none
int find_tensor(const Problem& problem, std::string_view name);            // -1 when there is none
std::vector<std::string> dimension_names(const Problem& problem);
std::vector<std::string> tensor_names(const Problem& problem);
bool uses_dimension(const ProblemTensor& tensor, int dimension);

struct GemmSize {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool operator==(const GemmSize&) const = default;
};
// Z[b,m,n] += A[b,m,k] B[b,k,n]; the batch dimension is left out when it is 1.
Problem gemm_problem(const GemmSize& size);

struct ConvolutionSize {
  int64_t batch = 1;
  int64_t in_channels = 1, out_channels = 1;  // of all groups together
  int64_t out_width = 1, out_height = 1;      // P and Q
  int64_t kernel_width = 1, kernel_height = 1;
  int64_t stride_width = 1, stride_height = 1;
  int64_t dilation_width = 1, dilation_height = 1;
  int64_t groups = 1;  // out_channels for a depthwise convolution
};
// Timeloop's names: C input and M output channels (of one group), R and S kernel, P and Q output, N batch, G groups
// (left out when there is one).
Problem convolution_problem(const ConvolutionSize& size);

}  // namespace foretoken
