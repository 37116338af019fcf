#include "accelerator/formats/timeloop_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t most_coefficients = 32;

std::optional<JsonView> find_spelling(const JsonView& view, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (auto found = view.find(key)) return found;
  }
  return std::nullopt;
}

// Sizes and coefficients of one instance; knows which names were asked for, so that others are seen to be slips.
class InstanceSizes {
 public:
  InstanceSizes(const JsonView& view, const TimeloopAttributes& variables) : view_(view), variables_(variables) {}

  std::optional<int64_t> find(const std::string& name) {
    known_.push_back(name);
    const auto value = view_.find(name);
    if (!value) return std::nullopt;
    const auto size = exact_integer(variables_.value_of(*value));
    if (!size || *size < 1 || *size > max_dimension_size) {
      value->fail(range_text(Range<int64_t>{.least = 1, .most = max_dimension_size}));
    }
    return *size;
  }

  int64_t at(const std::string& name) {
    const auto size = find(name);
    if (!size) view_.fail(fmt::format("a size for dimension {}", name));
    return *size;
  }

  void refuse_others(std::initializer_list<std::string_view> also) const {
    std::vector<std::string> known = known_;
    for (const std::string_view name : also) known.emplace_back(name);
    for (const auto& [name, value] : view_.members()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      value.fail(fmt::format("a dimension or coefficient of the shape in place of `{}`", printable(name)),
                 nearest_name(name, known).value_or(""));
    }
  }

  const JsonView& view() const { return view_; }

 private:
  const JsonView& view_;
  const TimeloopAttributes& variables_;
  std::vector<std::string> known_;
};

using Coefficients = std::map<std::string, int64_t>;

ProjectionTerm read_projection_term(const JsonView& view, const Problem& problem, const Coefficients& coefficients) {
  const auto parts = view.items();
  if (parts.empty() || parts.size() > 2) view.fail("[dimension] or [dimension, coefficient]");
  const std::string name = parts[0].string();
  const int dimension = find_dimension(problem, name);
  if (dimension < 0) {
    parts[0].fail("a dimension of the shape", nearest_name(name, dimension_names(problem)).value_or(""));
  }
  ProjectionTerm term{.dimension = dimension};
  if (parts.size() == 1) return term;
  if (parts[1].is_number()) {
    term.coefficient = parts[1].integer({.least = 1, .most = 1 << 20});
    return term;
  }
  const auto found = coefficients.find(parts[1].string());
  if (found == coefficients.end()) parts[1].fail("a coefficient of the shape");
  term.coefficient = found->second;
  return term;
}

ProblemTensor read_data_space(const JsonView& view, const Problem& problem, const Coefficients& coefficients) {
  view.allow_only({"name", "projection", "read-write", "read_write"});
  ProblemTensor tensor{.name = view.at("name").string()};
  if (const auto written = find_spelling(view, {"read-write", "read_write"})) tensor.written = written->boolean();
  const auto ranks = view.at("projection").items();
  if (ranks.size() > max_tensor_ranks) view.at("projection").fail(fmt::format("at most {} ranks", max_tensor_ranks));
  for (const JsonView& rank : ranks) {
    const auto terms = rank.items();
    if (terms.empty() || terms.size() > max_rank_terms) {
      rank.fail(fmt::format("a list of 1 to {} terms such as [[R], [P, Wstride]]", max_rank_terms));
    }
    auto& own = tensor.ranks.emplace_back();
    for (const JsonView& term : terms) own.push_back(read_projection_term(term, problem, coefficients));
  }
  return tensor;
}

Problem read_shape(const JsonView& shape, InstanceSizes& sizes) {
  shape.allow_only({"name", "version", "dimensions", "coefficients", "data_spaces", "data-spaces", "dataspaces"});
  Problem problem;
  if (const auto name = shape.find("name")) problem.name = name->string();
  const auto dimensions = shape.at("dimensions").items();
  if (dimensions.empty() || dimensions.size() > max_problem_dimensions) {
    shape.at("dimensions").fail(fmt::format("1 to {} dimensions", max_problem_dimensions));
  }
  for (const JsonView& dimension : dimensions) {
    const std::string name = dimension.string();
    problem.dimensions.push_back({.name = name, .size = sizes.at(name)});
  }
  Coefficients coefficients;
  if (const auto list = shape.find("coefficients")) {
    if (list->items().size() > most_coefficients) list->fail(fmt::format("at most {} coefficients", most_coefficients));
    for (const JsonView& item : list->items()) {
      item.allow_only({"name", "default"});
      const std::string name = item.at("name").string();
      const auto otherwise = item.find("default");
      const auto given = sizes.find(name);
      if (!given && !otherwise) item.fail(fmt::format("a default, or a value of {} in the instance", name));
      coefficients[name] = given ? *given : otherwise->integer({.least = 1, .most = 1 << 20});
    }
  }
  const auto tensors = find_spelling(shape, {"data_spaces", "data-spaces", "dataspaces"});
  if (!tensors) shape.fail("data_spaces: the tensors with their projections");
  if (tensors->items().size() > max_problem_tensors)
    tensors->fail(fmt::format("at most {} tensors", max_problem_tensors));
  for (const JsonView& tensor : tensors->items()) {
    problem.tensors.push_back(read_data_space(tensor, problem, coefficients));
  }
  return problem;
}

// Timeloop's convolution by name.
Problem read_named_shape(const JsonView& shape, InstanceSizes& sizes) {
  const std::string name = lower_case(shape.string());
  if (name != "cnn-layer" && name != "cnn_layer")
    shape.fail("a shape of dimensions and data_spaces, or cnn-layer", "cnn-layer");
  return convolution_problem({.batch = sizes.find("N").value_or(1),
                              .in_channels = sizes.at("C"),
                              .out_channels = sizes.at("M"),
                              .out_width = sizes.at("P"),
                              .out_height = sizes.at("Q"),
                              .kernel_width = sizes.at("R"),
                              .kernel_height = sizes.at("S"),
                              .stride_width = sizes.find("Wstride").value_or(1),
                              .stride_height = sizes.find("Hstride").value_or(1),
                              .dilation_width = sizes.find("Wdilation").value_or(1),
                              .dilation_height = sizes.find("Hdilation").value_or(1)});
}

std::vector<TimeloopDensity> read_densities(const JsonView& view, const Problem& problem) {
  std::vector<TimeloopDensity> densities;
  for (const auto& [name, value] : view.members()) {
    if (find_tensor(problem, name) < 0)
      value.fail(fmt::format("a tensor of the problem in place of `{}`", printable(name)));
    TimeloopDensity density{.tensor = name};
    if (value.is_number()) {
      density.density = value.number({.least = 0, .most = 1});
    } else {
      // Timeloop's front end writes all parameters of all distributions, with zeros for those that are not used.
      value.allow_only({"distribution", "density", "band_width", "workload_tensor_size"});
      for (const std::string_view key : {"band_width", "workload_tensor_size"}) {
        if (const auto unused = value.find(key); unused && unused->number() != 0)
          unused->fail("0: it is not supported");
      }
      if (const auto kind = value.find("distribution")) density.distribution = kind->string();
      density.density = value.at("density").number({.least = 0, .most = 1});
    }
    densities.push_back(std::move(density));
  }
  return densities;
}

}  // namespace

TimeloopProblem read_timeloop_problem(const JsonView& view, const TimeloopAttributes& variables) {
  const JsonView shape = view.at("shape");
  const bool apart = view.has("instance");
  if (apart) view.allow_only({"version", "shape", "instance"});
  const JsonView instance = apart ? view.at("instance") : view;
  InstanceSizes sizes(instance, variables);
  TimeloopProblem result;
  result.problem = shape.is(Json::Kind::string) ? read_named_shape(shape, sizes) : read_shape(shape, sizes);
  // The input's size and padding, which follow from the rest: layer files of Timeloop carry them along.
  sizes.refuse_others({"version", "shape", "densities", "H", "W", "Hpad", "Wpad"});
  const std::string fault = problem_fault(result.problem);
  if (!fault.empty()) view.fail("a problem that can be evaluated: " + fault);
  if (const auto densities = instance.find("densities")) {
    result.densities = read_densities(*densities, result.problem);
  }
  return result;
}

}  // namespace foretoken
