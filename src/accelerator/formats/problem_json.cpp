#include "accelerator/formats/problem_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> size_bounds{.least = 1, .most = max_dimension_size};

int64_t size_or_one(const JsonView& view, std::string_view key) {
  const auto found = view.find(key);
  return found ? found->integer(size_bounds) : 1;
}

Problem read_gemm_problem(const JsonView& view) {
  view.allow_only({"operator", "name", "m", "n", "k", "batch"});
  return gemm_problem({.m = view.at("m").integer(size_bounds),
                       .n = view.at("n").integer(size_bounds),
                       .k = view.at("k").integer(size_bounds),
                       .batch = size_or_one(view, "batch")});
}

Problem read_convolution_problem(const JsonView& view) {
  view.allow_only({"operator", "name", "batch", "in_channels", "out_channels", "out_width", "out_height",
                   "kernel_width", "kernel_height", "stride_width", "stride_height", "dilation_width",
                   "dilation_height", "groups"});
  const ConvolutionSize size{.batch = size_or_one(view, "batch"),
                             .in_channels = view.at("in_channels").integer(size_bounds),
                             .out_channels = view.at("out_channels").integer(size_bounds),
                             .out_width = view.at("out_width").integer(size_bounds),
                             .out_height = size_or_one(view, "out_height"),
                             .kernel_width = view.at("kernel_width").integer(size_bounds),
                             .kernel_height = size_or_one(view, "kernel_height"),
                             .stride_width = size_or_one(view, "stride_width"),
                             .stride_height = size_or_one(view, "stride_height"),
                             .dilation_width = size_or_one(view, "dilation_width"),
                             .dilation_height = size_or_one(view, "dilation_height"),
                             .groups = size_or_one(view, "groups")};
  if (size.in_channels % size.groups != 0 || size.out_channels % size.groups != 0) {
    view.at("groups").fail("a divisor of in_channels and of out_channels");
  }
  return convolution_problem(size);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// `R`, `2*P` or `P*2`.
ProjectionTerm read_index_term(const JsonView& view, std::string_view text, const Problem& problem) {
  const auto parts = split(text, "*");
  ProjectionTerm term{.dimension = -1};
  bool constant = false;
  for (const std::string_view part : parts) {
    const std::string_view word = trimmed(part);
    const int dimension = find_dimension(problem, word);
    if (dimension >= 0 && term.dimension < 0) {
      term.dimension = dimension;
      continue;
    }
    const auto number = parse_integer(word);
    if (number && !constant && *number >= 1 && *number <= 1 << 20) {
      term.coefficient = *number;
      constant = true;
      continue;
    }
    view.fail("a sum of dimensions times constants, such as 2*P + R",
              nearest_name(word, dimension_names(problem)).value_or(""));
  }
  if (term.dimension < 0) view.fail("a dimension in each term, such as 2*P + R");
  return term;
}

Problem read_einsum(const JsonView& view) {
  view.allow_only({"name", "dimensions", "tensors"});
  Problem problem;
  for (const auto& [name, size] : view.at("dimensions").members()) {
    problem.dimensions.push_back({.name = name, .size = size.integer(size_bounds)});
  }
  for (const JsonView& item : view.at("tensors").items()) {
    item.allow_only({"name", "index", "written"});
    ProblemTensor tensor{.name = item.at("name").string()};
    if (const auto written = item.find("written")) tensor.written = written->boolean();
    for (const JsonView& index : item.at("index").items()) {
      const std::string text = index.string();
      auto& terms = tensor.ranks.emplace_back();
      for (const std::string_view term : split(text, "+")) terms.push_back(read_index_term(index, term, problem));
    }
    problem.tensors.push_back(std::move(tensor));
  }
  return problem;
}

int named_level(const JsonView& view, const Architecture& architecture) {
  const std::string name = view.string();
  const int level = find_level(architecture, name);
  if (level < 0 || level + 1 == std::ssize(architecture.levels)) {
    view.fail("a level of the architecture above the one that computes",
              nearest_name(name, level_names(architecture)).value_or(""));
  }
  return level;
}

Loop read_loop(const JsonView& view, int level, const Problem& problem, bool& has_last) {
  view.allow_only({"dimension", "bound", "last", "across"});
  const JsonView name = view.at("dimension");
  Loop loop{.level = level, .dimension = find_dimension(problem, name.string())};
  if (loop.dimension < 0) {
    name.fail("a dimension of the problem", nearest_name(name.string(), dimension_names(problem)).value_or(""));
  }
  loop.bound = loop.last = view.at("bound").integer(size_bounds);
  if (const auto last = view.find("last")) {
    loop.last = last->integer({.least = 1, .most = loop.bound});
    has_last = true;
  }
  if (const auto across = view.find("across")) {
    const std::string side = across->string();
    if (side != "x" && side != "y") across->fail("x or y");
    loop.kind = side == "x" ? LoopKind::spatial_x : LoopKind::spatial_y;
  }
  return loop;
}

}  // namespace

Problem read_problem_json(const JsonView& view) {
  Problem problem;
  if (const auto named = view.find("operator")) {
    const std::string name = named->string();
    if (name == "gemm") {
      problem = read_gemm_problem(view);
    } else if (name == "convolution") {
      problem = read_convolution_problem(view);
    } else {
      const std::vector<std::string> known = {"gemm", "convolution"};
      named->fail("gemm or convolution; others as dimensions and tensors", nearest_name(name, known).value_or(""));
    }
  } else {
    problem = read_einsum(view);
  }
  if (const auto name = view.find("name")) problem.name = name->string();
  const std::string fault = problem_fault(problem);
  if (!fault.empty()) view.fail("a problem that can be evaluated: " + fault);
  return problem;
}

Json problem_json(const Problem& problem) {
  Json json = Json::object();
  if (!problem.name.empty()) json.set("name", problem.name);
  Json dimensions = Json::object();
  for (const ProblemDimension& dimension : problem.dimensions) dimensions.set(dimension.name, dimension.size);
  Json tensors = Json::array();
  for (const ProblemTensor& tensor : problem.tensors) {
    Json index = Json::array();
    for (const auto& rank : tensor.ranks) {
      std::string text;
      for (const ProjectionTerm& term : rank) {
        const std::string& name = problem.dimensions[term.dimension].name;
        text += text.empty() ? "" : " + ";
        text += term.coefficient == 1 ? name : fmt::format("{}*{}", term.coefficient, name);
      }
      index.push(text);
    }
    Json entry = Json::object({{"name", tensor.name}, {"index", index}});
    if (tensor.written) entry.set("written", true);
    tensors.push(entry);
  }
  return json.set("dimensions", dimensions).set("tensors", tensors);
}

Mapping read_mapping_json(const JsonView& view, const Architecture& architecture, const Problem& problem) {
  view.allow_only({"levels"});
  Mapping mapping;
  mapping.kept.assign(architecture.levels.size() - 1, 0);
  bool has_last = false;
  int before = -1;
  for (const JsonView& entry : view.at("levels").items()) {
    entry.allow_only({"level", "keep", "loops"});
    const int level = named_level(entry.at("level"), architecture);
    if (level <= before) entry.at("level").fail("levels once each, from the outermost to the innermost");
    before = level;
    if (const auto kept = entry.find("keep")) {
      for (const JsonView& item : kept->items()) {
        const int tensor = find_tensor(problem, item.string());
        if (tensor < 0) item.fail("a tensor of the problem");
        mapping.kept[level] |= 1U << tensor;
      }
    }
    if (const auto loops = entry.find("loops")) {
      for (const JsonView& item : loops->items()) mapping.loops.push_back(read_loop(item, level, problem, has_last));
    }
  }
  if (!has_last) set_remainders(mapping, problem);
  return mapping;
}

Json mapping_json(const Mapping& mapping, const Architecture& architecture, const Problem& problem) {
  Json levels = Json::array();
  for (int i = 0; i + 1 < std::ssize(architecture.levels); ++i) {
    Json kept = Json::array();
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      if ((mapping.kept[i] >> t & 1) != 0) kept.push(problem.tensors[t].name);
    }
    Json loops = Json::array();
    for (const Loop& loop : mapping.loops) {
      if (loop.level != i) continue;
      Json entry = Json::object({{"dimension", problem.dimensions[loop.dimension].name}, {"bound", loop.bound}});
      if (loop.last != loop.bound) entry.set("last", loop.last);
      if (is_spatial(loop)) entry.set("across", loop.kind == LoopKind::spatial_x ? "x" : "y");
      loops.push(entry);
    }
    levels.push(Json::object({{"level", architecture.levels[i].name}, {"keep", kept}, {"loops", loops}}));
  }
  return Json::object({{"levels", levels}});
}

}  // namespace foretoken
