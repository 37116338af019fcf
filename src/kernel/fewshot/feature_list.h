// Names and values of features, added together so that they cannot drift apart.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/portable_math.h"

namespace foretoken {

struct FeatureList {
  std::vector<std::string> names;
  std::vector<double> values;

  void add(std::string name, double value) {
    names.push_back(std::move(name));
    values.push_back(value);
  }
  // The logarithm of a cost above zero.
  void add_log(const std::string& name, double cost) { add("log_" + name, portable_log(cost)); }
};

}  // namespace foretoken
