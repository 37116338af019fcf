#include "accelerator/element_width.h"

#include <cmath>

namespace foretoken {
namespace {

double words_of_bits(const Architecture& architecture, size_t level, double bits) {
  if (bits <= 0) return 1;
  const AcceleratorLevel& own = architecture.levels[level];
  const double words = bits / own.word_bits;
  return level == 0 || own.words_per_access > 1 ? words : std::ceil(words);
}

}  // namespace

double words_of_element(const Architecture& architecture, size_t level, const ProblemTensor& tensor) {
  return words_of_bits(architecture, level, level == 0 && tensor.outside_bits > 0 ? tensor.outside_bits : tensor.bits);
}

double words_of_sum(const Architecture& architecture, size_t level, const ProblemTensor& tensor) {
  return tensor.sum_bits > 0 ? words_of_bits(architecture, level, tensor.sum_bits)
                             : words_of_element(architecture, level, tensor);
}

}  // namespace foretoken
