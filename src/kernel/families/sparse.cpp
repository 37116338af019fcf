// Products of a sparse matrix with dense ones, as graph neural networks need them.
#include <algorithm>
#include <span>

#include "kernel/families/list.h"
#include "kernel/families/parameters.h"
#include "model/work.h"

namespace foretoken {
namespace {

enum SparseParameter { sparse_dtype, graph, sparse_rows, sparse_columns, nnz, max_row, sparse_features };

// Formats that were measured; nothing is known about kernels in others.
constexpr DType spmm_types[] = {DType::fp32, DType::bf16};
constexpr DType sddmm_types[] = {DType::fp32};

constexpr std::span<const DType> measured_types(SparseProduct product) {
  return product == SparseProduct::spmm ? std::span<const DType>(spmm_types) : std::span<const DType>(sddmm_types);
}

// Further spellings of a format, as its place in the list.
template <SparseProduct product>
std::optional<double> parse_sparse_type(std::string_view text) {
  const std::span<const DType> types = measured_types(product);
  const auto found = std::find(types.begin(), types.end(), dtype_from_name(text));
  return found == types.end() ? std::nullopt : std::optional(static_cast<double>(found - types.begin()));
}

template <SparseProduct product>
KernelParameter sparse_type_parameter() {
  std::vector<std::string> names;
  for (const DType type : measured_types(product)) names.emplace_back(dtype_name(type));
  KernelParameter parameter = choice_parameter(
      "dtype", "values, dense matrices and result; other formats were not measured", std::move(names), "fp32");
  parameter.parse = parse_sparse_type<product>;
  return parameter;
}

template <SparseProduct product>
std::vector<KernelParameter> sparse_parameters() {
  return {
      sparse_type_parameter<product>(),
      choice_parameter("graph",
                       "where the nonzeros lie: uniform (anywhere), power (few rows and columns hold most, as in web "
                       "and social graphs) or band (near the diagonal, as in meshes and reordered graphs)",
                       {"uniform", "power", "band"}, "uniform"),
      size_parameter("rows", "rows of the sparse matrix (nodes)", "65536"),
      size_parameter_or("columns", "columns of the sparse matrix; 0 = as many as rows", "0", 0),
      size_parameter("nnz", "nonzeros (edges)", "1048576"),
      size_parameter_or("max_row", "nonzeros of the longest row; 0 = estimated from the kind of graph", "0", 0),
      size_parameter("features", "columns of the dense matrices (features of a node)", "128")};
}

double columns_of(KernelValues v) {
  return v[sparse_columns] > 0 ? v[sparse_columns] : v[sparse_rows];
}

std::optional<Misfit> sparse_misfit(KernelValues v) {
  const double columns = columns_of(v);
  if (v[nnz] > v[sparse_rows] * columns) return Misfit{nnz, "at most rows x columns nonzeros"};
  if (v[max_row] > std::min(columns, v[nnz]))
    return Misfit{max_row, "at most as many as there are columns and nonzeros"};
  if (v[max_row] > 0 && v[max_row] * v[sparse_rows] < v[nnz]) return Misfit{max_row, "at least the mean of all rows"};
  return std::nullopt;
}

template <SparseProduct product>
KernelShape sparse_shape(KernelValues v) {
  const double columns = columns_of(v);
  const auto pattern = static_cast<SparsePattern>(static_cast<int>(v[graph]));
  const double longest = v[max_row] > 0 ? v[max_row] : expected_longest_row(v[sparse_rows], columns, v[nnz], pattern);
  return SparseShape{.product = product,
                     .pattern = pattern,
                     .rows = count(v[sparse_rows]),
                     .columns = count(columns),
                     .nonzeros = count(v[nnz]),
                     .features = count(v[sparse_features]),
                     .longest_row = count(longest),
                     .dtype = measured_types(product)[static_cast<size_t>(v[sparse_dtype])]};
}

}  // namespace

KernelFamily spmm_family() {
  return {.name = "spmm",
          .summary = "sparse matrix times dense matrix (aggregation of a graph network)",
          .parameters = sparse_parameters<SparseProduct::spmm>(),
          .shape = sparse_shape<SparseProduct::spmm>,
          .misfit = sparse_misfit};
}

KernelFamily sddmm_family() {
  return {.name = "sddmm",
          .summary = "dense times dense at the nonzeros of a sparse matrix (edge scores of a graph network)",
          .parameters = sparse_parameters<SparseProduct::sddmm>(),
          .shape = sparse_shape<SparseProduct::sddmm>,
          .misfit = sparse_misfit};
}

}  // namespace foretoken
