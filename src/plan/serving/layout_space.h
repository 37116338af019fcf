// Which layouts there are for a question.
#pragma once

#include <string>
#include <vector>

#include "plan/serving/serving_question.h"

namespace foretoken {

struct LayoutSpace {
  std::vector<ServingLayout> layouts;
  // Where every number of replicas would be too many layouts, numbers are this share apart at most; 0 = none is left
  // out.
  double largest_gap = 0;
};

// Every layout of the choices that suits the model and the hardware, whether or not it fits in memory, in a fixed
// order: engines of the defaults first. A tensor group lies within a node; so do ranks that share experts. Where a rate
// is asked for, every number of replicas is a layout, up to some hundred thousand layouts; else as many replicas as the
// devices and the budget allow. InputError where the choices alone are too many.
LayoutSpace layout_space(const ServingQuestion& question);
inline std::vector<ServingLayout> serving_layouts(const ServingQuestion& question) {
  return layout_space(question).layouts;
}

// Why engines and formats of the choices are not tried on some of the devices, a sentence each.
std::vector<std::string> left_out(const ServingQuestion& question);

}  // namespace foretoken
