// How many words of a level an element of a tensor takes, where formats are narrower or wider than its words.
#pragma once

#include "accelerator/architecture.h"
#include "accelerator/problem.h"

namespace foretoken {

// The outermost memory, and levels whose access is wider than a word, pack elements densely; elsewhere an element fills
// whole words. An element without bits is one word of any level.
double words_of_element(const Architecture& architecture, size_t level, const ProblemTensor& tensor);
// The same for a sum that is not complete yet.
double words_of_sum(const Architecture& architecture, size_t level, const ProblemTensor& tensor);

}  // namespace foretoken
