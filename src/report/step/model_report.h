// The model library for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/catalogue.h"

namespace foretoken {

// A model with what its data file says about it; nothing for a user's own config.
struct DescribedModel {
  Model model;
  std::optional<ModelEntry> entry;
};

std::string model_list_text(const std::vector<DescribedModel>& models);
Json model_list_json(const std::vector<DescribedModel>& models);

std::string model_text(const DescribedModel& described);
Json model_json(const DescribedModel& described);

}  // namespace foretoken
