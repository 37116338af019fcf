// The mean of a Gaussian process over few measured rows: smooth where boosted trees have steps, so that the mean of
// both is better than either. It keeps weights of rows, not their covariance as that of plan/accelerator/ does.
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"

namespace foretoken {

class SmoothResidual {
 public:
  struct Parts {
    std::vector<uint8_t> used;           // which features tell how far apart two rows are
    std::vector<float> inverse_lengths;  // of each of these: one over the distance at which rows have little in common
    size_t group_feature = 0;            // number of the call group
    float across = 0;                    // share that rows of two groups at the same place have in common
    std::vector<float> groups;           // of each row that was seen
    std::vector<float> weights;          // the same: its share in every answer
    std::vector<float> places;           // the same, row by row: the features used, times the inverse lengths
  };

  SmoothResidual() = default;            // answers 0
  explicit SmoothResidual(Parts parts);  // without a flaw

  bool empty() const { return parts_.weights.empty(); }
  const Parts& parts() const { return parts_; }
  double predict(std::span<const float> features) const;

  // Of two rows at this squared distance. A rational quadratic needs no function whose last bit differs between
  // machines.
  static double correlation(double squared_distance) { return 1 / (1 + squared_distance / 2); }

  // What keeps the parts from being a process over so many features; nothing if they are one.
  static std::optional<std::string> flaw(const Parts& parts, size_t features);

  Json to_json() const;  // packed: base64 of bytes and of little-endian numbers
  static SmoothResidual from_json(const JsonView& view, size_t features);  // InputError for anything inconsistent

 private:
  Parts parts_;
};

}  // namespace foretoken
