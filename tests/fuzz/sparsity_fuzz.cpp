// Any bytes are a matrix and a description of a sparsity whose evaluation keeps its laws, or an InputError.
#include <string>

#include "accelerator/sparse/description_file.h"
#include "accelerator/sparse/nonzero_matrix.h"
#include "accelerator/sparse/sparse_evaluator.h"
#include "base/error.h"
#include "fuzz.h"

namespace {

using namespace foretoken;

template <class Parse>
void try_to_read(const Parse& parse) {
  try {
    parse();
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

void check_matrix(const NonzeroMatrix& matrix) {
  promise(matrix.rows >= 1 && matrix.columns >= 1, "a matrix has rows and columns");
  for (const NonzeroPlace& place : matrix.places) {
    promise(place.row >= 0 && place.row < matrix.rows && place.column >= 0 && place.column < matrix.columns,
            "nonzeros lie in their matrix");
  }
}

struct SmallDesign {
  Problem problem = gemm_problem({.m = 4, .n = 4, .k = 8});
  Architecture architecture{
      .levels = {{.name = "DRAM"}, {.name = "buffer"}, {.name = "MAC", .kind = LevelKind::compute}}};
  Mapping mapping{.loops = {{.level = 0, .dimension = 2, .bound = 2, .last = 2},
                            {.level = 1, .dimension = 0, .bound = 4, .last = 4},
                            {.level = 1, .dimension = 1, .bound = 4, .last = 4},
                            {.level = 1, .dimension = 2, .bound = 4, .last = 4}},
                  .kept = {7, 7}};

  void check(const SparsityDescription& sparsity) const {
    promise(sparsity_fault(sparsity, architecture, problem).empty(), "what is read belongs to its design");
    Evaluation dense;
    promise(MappingEvaluator(architecture, problem).evaluate(mapping, dense), "the mapping fits");
    const SparseEvaluation result = evaluate_sparse(architecture, problem, mapping, dense, sparsity);
    promise(result.operations.actual >= 0 && result.operations.actual <= dense.operations, "work is only left out");
    for (const SparseTraffic& traffic : result.traffic) {
      promise(traffic.reads.actual >= 0 && traffic.stored_words <= traffic.tile_words, "tiles only shrink");
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(as_text(data, size));
  try_to_read([&] { check_matrix(parse_csv_matrix(text, "input")); });
  try_to_read([&] { check_matrix(parse_matrix_market(text, "input")); });
  const SmallDesign design;
  try_to_read([&] {
    const Json document = parse_json(text, "input");
    design.check(read_sparsity(JsonView(document, "input"), design.architecture, design.problem));
  });
  try_to_read([&] {
    const Json document = parse_json(text, "input");
    SparsityDescription sparsity = without_sparsity(design.architecture, design.problem);
    read_timeloop_sparsity(JsonView(document, "input"), design.architecture, design.problem, sparsity);
    design.check(sparsity);
  });
  return 0;
}
