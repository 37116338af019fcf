#include "accelerator/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/kinds.h"

namespace foretoken {
namespace {

std::vector<ProjectionTerm> only(int dimension) {
  return {{.dimension = dimension}};
}

}  // namespace

std::string problem_fault(const Problem& problem) {
  if (problem.dimensions.empty()) return "a problem needs at least one dimension";
  if (problem.dimensions.size() > max_problem_dimensions) {
    return fmt::format("{} dimensions; at most {}", problem.dimensions.size(), max_problem_dimensions);
  }
  if (problem.tensors.empty()) return "a problem needs at least one tensor";
  if (problem.tensors.size() > max_problem_tensors) {
    return fmt::format("{} tensors; at most {}", problem.tensors.size(), max_problem_tensors);
  }
  for (const ProblemDimension& dimension : problem.dimensions) {
    if (dimension.size < 1 || dimension.size > max_dimension_size) {
      return fmt::format("dimension {} has size {}; from 1 to {}", dimension.name, dimension.size, max_dimension_size);
    }
  }
  std::set<std::string> dimension_names, tensor_names;
  for (const ProblemDimension& dimension : problem.dimensions) {
    if (!dimension_names.insert(dimension.name).second)
      return fmt::format("two dimensions are named {}", dimension.name);
  }
  if (std::none_of(problem.tensors.begin(), problem.tensors.end(), [](const auto& own) { return own.written; })) {
    return "no tensor is written: one must hold the result";
  }
  for (const ProblemTensor& tensor : problem.tensors) {
    if (!tensor_names.insert(tensor.name).second) return fmt::format("two tensors are named {}", tensor.name);
    std::array<int, max_problem_dimensions> uses{};
    if (tensor.ranks.size() > max_tensor_ranks) {
      return fmt::format("tensor {} has {} ranks; at most {}", tensor.name, tensor.ranks.size(), max_tensor_ranks);
    }
    for (const auto& rank : tensor.ranks) {
      if (rank.empty() || rank.size() > max_rank_terms) {
        return fmt::format("a rank of tensor {} has {} terms; from 1 to {}", tensor.name, rank.size(), max_rank_terms);
      }
      for (const ProjectionTerm& term : rank) {
        if (term.dimension < 0 || term.dimension >= static_cast<int>(problem.dimensions.size())) {
          return fmt::format("tensor {} uses a dimension that does not exist", tensor.name);
        }
        if (term.coefficient < 1) {
          return fmt::format("tensor {}: coefficient {}; positive ones only", tensor.name, term.coefficient);
        }
        if (++uses[term.dimension] > 1) {
          return fmt::format("tensor {} uses dimension {} twice; a diagonal cannot be tiled", tensor.name,
                             problem.dimensions[term.dimension].name);
        }
      }
    }
  }
  return "";
}

double operations(const Problem& problem) {
  double product = 1;
  for (const ProblemDimension& dimension : problem.dimensions) product *= static_cast<double>(dimension.size);
  return product;
}

double tensor_words(const ProblemTensor& tensor, const Problem& problem) {
  double words = 1;
  for (const auto& rank : tensor.ranks) {
    double extent = 1;
    for (const ProjectionTerm& term : rank) {
      const int64_t size = problem.dimensions[term.dimension].size;
      extent += static_cast<double>(term.coefficient) * static_cast<double>(size - 1);
    }
    words *= extent;
  }
  return words;
}

int find_dimension(const Problem& problem, std::string_view name) {
  for (size_t i = 0; i < problem.dimensions.size(); ++i) {
    if (problem.dimensions[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int find_tensor(const Problem& problem, std::string_view name) {
  for (size_t i = 0; i < problem.tensors.size(); ++i) {
    if (problem.tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<std::string> dimension_names(const Problem& problem) {
  return kind_names(problem.dimensions);
}

std::vector<std::string> tensor_names(const Problem& problem) {
  return kind_names(problem.tensors);
}

bool uses_dimension(const ProblemTensor& tensor, int dimension) {
  for (const auto& rank : tensor.ranks) {
    for (const ProjectionTerm& term : rank) {
      if (term.dimension == dimension) return true;
    }
  }
  return false;
}

Problem gemm_problem(const GemmSize& size) {
  Problem problem{
      .name = "gemm",
      .dimensions = {{.name = "M", .size = size.m}, {.name = "N", .size = size.n}, {.name = "K", .size = size.k}},
      .tensors = {{.name = "A", .ranks = {only(0), only(2)}},
                  {.name = "B", .ranks = {only(2), only(1)}},
                  {.name = "Z", .ranks = {only(0), only(1)}, .written = true}}};
  if (size.batch > 1) {
    problem.dimensions.push_back({.name = "H", .size = size.batch});
    for (ProblemTensor& tensor : problem.tensors) tensor.ranks.insert(tensor.ranks.begin(), only(3));
  }
  return problem;
}

Problem convolution_problem(const ConvolutionSize& size) {
  enum Dimension { c, m, r, s, n, p, q, g };
  const std::vector<ProjectionTerm> columns = {{.dimension = r, .coefficient = size.dilation_width},
                                               {.dimension = p, .coefficient = size.stride_width}};
  const std::vector<ProjectionTerm> rows = {{.dimension = s, .coefficient = size.dilation_height},
                                            {.dimension = q, .coefficient = size.stride_height}};
  Problem problem{.name = "convolution",
                  .dimensions = {{.name = "C", .size = size.in_channels / size.groups},
                                 {.name = "M", .size = size.out_channels / size.groups},
                                 {.name = "R", .size = size.kernel_width},
                                 {.name = "S", .size = size.kernel_height},
                                 {.name = "N", .size = size.batch},
                                 {.name = "P", .size = size.out_width},
                                 {.name = "Q", .size = size.out_height}},
                  .tensors = {{.name = "Weights", .ranks = {only(c), only(m), only(r), only(s)}},
                              {.name = "Inputs", .ranks = {only(n), only(c), columns, rows}},
                              {.name = "Outputs", .ranks = {only(n), only(m), only(q), only(p)}, .written = true}}};
  if (size.groups > 1) {
    problem.dimensions.push_back({.name = "G", .size = size.groups});
    for (ProblemTensor& tensor : problem.tensors) tensor.ranks.insert(tensor.ranks.begin(), only(g));
  }
  return problem;
}

}  // namespace foretoken
