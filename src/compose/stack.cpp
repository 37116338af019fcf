#include "compose/stack.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/day.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "hardware/catalogue.h"
#include "hardware/software.h"
#include "library/library.h"
#include "model/shape_fields.h"

namespace foretoken {
namespace {

constexpr std::string_view dispatch_names[] = {"fused", "graph", "piecewise", "eager"};
constexpr Range<double> microseconds{0, 1e7};

template <size_t n>
std::vector<std::string> texts(const std::string_view (&names)[n]) {
  return {std::begin(names), std::end(names)};
}

// The index of a text among names.
template <size_t n>
size_t choice(const JsonView& view, const std::string_view (&names)[n]) {
  const std::string text = view.string();
  const auto* found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) {
    const std::vector<std::string> known = texts(names);
    view.fail(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(text, known).value_or(""));
  }
  return static_cast<size_t>(found - std::begin(names));
}

std::vector<std::string> one_or_more(const JsonView& view) {
  if (view.is(Json::Kind::string)) return {view.string()};
  std::vector<std::string> result;
  for (const JsonView& item : view.items()) result.push_back(item.string());
  return result;
}

bool name_fits(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

void set_time(const JsonView& parent, std::string_view key, Seconds& time) {
  if (const auto found = parent.find(key)) time = Seconds(found->number(microseconds) * 1e-6);
}

void set_number(const JsonView& parent, std::string_view key, Range<double> allowed, double& number) {
  if (const auto found = parent.find(key)) number = found->number(allowed);
}

std::string known_platform(const JsonView& view, const std::string& name) {
  std::vector<std::string> known;
  for (const Platform& platform : platforms()) known.emplace_back(platform.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    view.fail(fmt::format("the name of a platform: one of {}", fmt::join(known, ", ")),
              nearest_name(name, known).value_or(""));
  }
  return name;
}

StepPhase read_phase(const JsonView& view, const std::string& name) {
  const std::optional<StepPhase> known = step_phase_from_name(name);
  if (!known) {
    view.fail(fmt::format("one of {}", fmt::join(step_phase_names(), ", ")),
              nearest_name(name, step_phase_names()).value_or(""));
  }
  return *known;
}

// On top of those of the stack that it extends.
StackCosts read_costs(const JsonView& view, StackCosts costs) {
  view.allow_only({"graph_start_us", "kernel_gap_us", "graph_gap_us", "eager_gap_us", "launch_us", "piece_us",
                   "step_host_us", "synchronize_us", "host_us", "host_low", "host_high", "kernels_low", "kernels_high",
                   "prompt_kernels_high", "kernel_factor", "family_factor", "front", "uncompiled"});
  set_time(view, "graph_start_us", costs.graph_start);
  set_time(view, "kernel_gap_us", costs.kernel_gap);
  set_time(view, "graph_gap_us", costs.graph_gap);
  set_time(view, "eager_gap_us", costs.eager_gap);
  set_time(view, "launch_us", costs.launch);
  set_time(view, "piece_us", costs.piece);
  set_time(view, "step_host_us", costs.step_host);
  set_time(view, "synchronize_us", costs.synchronize);
  if (const auto front = view.find("front")) {
    front->allow_only({"latency_us", "request_us", "token_us", "piece_us", "piece_low_us", "piece_high_us"});
    set_time(*front, "latency_us", costs.front.latency);
    set_time(*front, "request_us", costs.front.request);
    set_time(*front, "token_us", costs.front.token);
    set_time(*front, "piece_us", costs.front.piece);
    if (front->has("piece_us")) costs.front.piece_low = costs.front.piece_high = costs.front.piece;
    set_time(*front, "piece_low_us", costs.front.piece_low);
    set_time(*front, "piece_high_us", costs.front.piece_high);
  }
  const auto set_host = [](const JsonView& of, std::map<std::string, Seconds, std::less<>>& times) {
    if (const auto host = of.find("host_us")) {
      for (const auto& [name, value] : host->members()) times[name] = Seconds(value.number(microseconds) * 1e-6);
    }
  };
  set_host(view, costs.host);
  if (const auto uncompiled = view.find("uncompiled")) {
    uncompiled->allow_only({"host_us", "host_low", "host_high"});
    if (!costs.uncompiled) costs.uncompiled.emplace();
    set_host(*uncompiled, costs.uncompiled->host);
    set_number(*uncompiled, "host_low", {0.01, 1}, costs.uncompiled->host_low);
    set_number(*uncompiled, "host_high", {1, 100}, costs.uncompiled->host_high);
  }
  if (const auto factors = view.find("kernel_factor")) {
    for (const auto& [phase, factor] : factors->members()) {
      costs.kernel_factor[read_phase(factor, phase)] = factor.number({0.1, 10});
    }
  }
  if (const auto factors = view.find("family_factor")) {
    factors->allow_only({"attention", "experts", "collectives"});
    set_number(*factors, "attention", {0.1, 10}, costs.attention_factor);
    set_number(*factors, "experts", {0.1, 10}, costs.expert_factor);
    set_number(*factors, "collectives", {0.1, 10}, costs.collective_factor);
  }
  set_number(view, "kernels_low", {0.01, 1}, costs.kernels_low);
  set_number(view, "kernels_high", {1, 100}, costs.kernels_high);
  set_number(view, "prompt_kernels_high", {1, 100}, costs.prompt_kernels_high);
  set_number(view, "host_low", {0.01, 1}, costs.host_low);
  set_number(view, "host_high", {1, 100}, costs.host_high);
  return costs;
}

class StackReader {
 public:
  explicit StackReader(const JsonView& root) : root_(root) {}

  Stack read() const {
    root_.allow_only({"format", "name", "summary", "source", "fitted_on", "software", "dispatch", "costs",
                      "graph_sizes", "kernels", "rules", "extends", "tuned_linears", "tuned_experts",
                      "split_mixed_attention", "graphs_of_sequences", "asynchronous", "side_stream_tokens", "on"});
    if (const JsonView format = root_.at("format"); format.integer({1, 1'000'000}) > 1) {
      format.fail("1: a later version of foretoken wrote this");
    }
    Stack stack{.name = root_.at("name").string(),
                .summary = root_.at("summary").string(),
                .source = root_.at("source").string(),
                .origin = read_stack_origin(root_)};
    const auto dispatch = root_.has("extends") ? root_.find("dispatch") : std::optional(root_.at("dispatch"));
    const auto members = dispatch ? dispatch->members() : std::vector<std::pair<std::string, JsonView>>();
    for (const auto& [phase, kind] : members) {
      stack.dispatch[read_phase(kind, phase)] = static_cast<Dispatch>(choice(kind, dispatch_names));
    }
    if (const auto costs = root_.find("costs")) stack.costs = read_costs(*costs, {});
    if (const auto sizes = root_.find("graph_sizes")) stack.graph_sizes = read_sizes(*sizes);
    if (const auto tuned = root_.find("tuned_linears")) stack.tuned_linears = tuned->boolean();
    if (const auto tuned = root_.find("tuned_experts")) stack.tuned_experts = tuned->boolean();
    if (const auto split = root_.find("split_mixed_attention")) stack.split_mixed_attention = split->boolean();
    if (const auto of_sequences = root_.find("graphs_of_sequences")) {
      stack.graphs_of_sequences = of_sequences->boolean();
    }
    if (const auto ahead = root_.find("asynchronous")) stack.asynchronous = ahead->boolean();
    if (const auto tokens = root_.find("side_stream_tokens")) {
      stack.side_stream_tokens = tokens->integer({0, 1'000'000});
    }
    if (const auto kernels = root_.find("kernels")) {
      for (const auto& [family, variant] : kernels->members()) stack.kernels[family] = variant.string();
    }
    if (const auto on = root_.find("on")) {
      for (const auto& [platform, other] : on->members()) stack.on[known_platform(other, platform)] = other.string();
    }
    if (const auto rules = root_.find("rules")) {
      for (const JsonView& rule : rules->items()) stack.rules.push_back(read_rule(rule));
    }
    return stack;
  }

 private:
  // A list of sizes and of {"from", "to", "step"}.
  static std::vector<int64_t> read_sizes(const JsonView& view) {
    constexpr Range<int64_t> allowed{1, 1'000'000};
    std::vector<int64_t> sizes;
    for (const JsonView& item : view.items()) {
      if (!item.is(Json::Kind::object)) {
        sizes.push_back(item.integer(allowed));
        continue;
      }
      item.allow_only({"from", "to", "step"});
      const int64_t last = item.at("to").integer(allowed), step = item.at("step").integer(allowed);
      for (int64_t size = item.at("from").integer(allowed); size <= last; size += step) sizes.push_back(size);
    }
    if (!std::is_sorted(sizes.begin(), sizes.end())) view.fail("sizes in ascending order");
    return sizes;
  }

  static OperatorPattern read_pattern(const JsonView& view) {
    view.allow_only({"name", "family", "pass", "phase", "model", "generation", "if"});
    OperatorPattern pattern;
    if (const auto names = view.find("name")) pattern.names = one_or_more(*names);
    if (const auto families = view.find("family")) pattern.families = one_or_more(*families);
    if (const auto pass = view.find("pass")) {
      constexpr std::string_view passes[] = {"forward", "backward"};
      pattern.pass = static_cast<Pass>(choice(*pass, passes));
    }
    if (const auto phases = view.find("phase")) {
      if (phases->is(Json::Kind::string)) {
        pattern.phases.push_back(read_phase(*phases, phases->string()));
      } else {
        for (const JsonView& one : phases->items()) {
          pattern.phases.push_back(read_phase(one, one.string()));
        }
      }
    }
    if (const auto models = view.find("model")) pattern.models = one_or_more(*models);
    if (const auto generations = view.find("generation")) pattern.generations = one_or_more(*generations);
    if (const auto condition = view.find("if")) pattern.condition = read_expression(*condition);
    return pattern;
  }

  static Expression read_expression(const JsonView& view) {
    if (view.is_number()) return Expression::constant(view.number());
    if (view.is(Json::Kind::boolean)) return Expression::constant(view.boolean() ? 1 : 0);
    return Expression::parse(view.string(), view.source(), view.path());
  }

  static StackKernel read_kernel(const JsonView& view) {
    StackKernel kernel;
    std::optional<KernelShape> shape;
    for (const auto& [key, value] : view.members()) {
      if (key == "name") {
        kernel.name = value.string();
      } else if (key == "family") {
        kernel.family = value.string();
        shape = default_shape(kernel.family);
        if (!shape) value.fail("a kernel family that rules can make (gemm, norm, elementwise, ...)");
      } else if (key == "kernel") {
        kernel.variant = value.string();
      } else if (key == "host") {
        kernel.host = value.string();
      } else if (key == "waits") {
        kernel.waits = value.boolean();
      } else if (key == "times") {
        kernel.times = read_expression(value);
      } else if (key == "dtype") {
        kernel.dtype = dtype_from_name(value.string());
        if (!kernel.dtype) {
          value.fail(fmt::format("one of {}", fmt::join(dtype_names(), ", ")),
                     nearest_name(value.string(), dtype_names()).value_or(""));
        }
      } else {
        kernel.values.emplace_back(key, read_expression(value));
      }
    }
    if (shape) {
      for (const auto& [name, value] : kernel.values) {
        KernelShape copy = *shape;
        if (!set_shape_field(copy, name, 1)) {
          view.at(name).fail(fmt::format("a field of the family {}", kernel.family));
        }
      }
    }
    return kernel;
  }

  static StackRule read_rule(const JsonView& view) {
    view.allow_only({"when", "then", "host_us", "emit"});
    StackRule rule{.when = read_pattern(view.at("when"))};
    set_time(view, "host_us", rule.host);
    if (const auto then = view.find("then")) {
      for (const JsonView& one : then->items()) rule.then.push_back(read_pattern(one));
    }
    for (const JsonView& one : view.at("emit").items()) rule.emit.push_back(read_kernel(one));
    return rule;
  }

  const JsonView& root_;
};

}  // namespace

StackOrigin read_stack_origin(const JsonView& root) {
  StackOrigin origin;
  if (const auto date = root.find("fitted_on")) {
    origin.fitted_on = date->string();
    if (!is_day(origin.fitted_on)) date->fail("a date such as 2026-11-17");
  }
  if (const auto software = root.find("software")) {
    origin.software = software->string();
    if (origin.software.empty()) software->fail("the software and its release, such as vLLM 0.10.2");
  }
  return origin;
}

std::string origin_text(const StackOrigin& origin) {
  const bool has_software = !origin.software.empty() && origin.software != "none";
  if (origin.fitted_on.empty()) return has_software ? "for " + origin.software : "";
  return "last fitted or changed " + origin.fitted_on + (has_software ? ", for " + origin.software : "");
}

bool is_attention(const KernelShape& shape) {
  return std::holds_alternative<AttentionShape>(shape) || std::holds_alternative<MixedAttentionShape>(shape) ||
         std::holds_alternative<LatentAttentionShape>(shape) || std::holds_alternative<LinearAttentionShape>(shape);
}

std::string_view dispatch_name(Dispatch dispatch) {
  return dispatch_names[static_cast<size_t>(dispatch)];
}

std::optional<Dispatch> dispatch_from_name(std::string_view name) {
  const auto* found = std::find(std::begin(dispatch_names), std::end(dispatch_names), name);
  if (found == std::end(dispatch_names)) return std::nullopt;
  return static_cast<Dispatch>(found - std::begin(dispatch_names));
}

bool OperatorPattern::fits(const Operator& call, const LoweredStep& step, const Expression::Names& fields) const {
  const auto fits_name = [&](const std::string& pattern) { return name_fits(pattern, call.name); };
  const auto among = [](const auto& wanted, const auto& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
  };
  if (!names.empty() && std::none_of(names.begin(), names.end(), fits_name)) return false;
  if (!among(families, family_name(call.shape)) || !among(models, step.model)) return false;
  if (!among(generations, step.generation) || !among(phases, step.phase)) return false;
  if (pass && *pass != call.pass) return false;
  return !condition || condition->value(fields) != 0;
}

Dispatch Stack::dispatch_of(StepPhase phase) const {
  const auto found = dispatch.find(phase);
  return found == dispatch.end() ? Dispatch::fused : found->second;
}

Dispatch Stack::dispatch_of(StepPhase phase, int64_t tokens) const {
  const Dispatch kind = dispatch_of(phase);
  const bool captured = kind == Dispatch::graph || kind == Dispatch::piecewise;
  return captured && !graph_sizes.empty() && tokens > graph_sizes.back() ? Dispatch::eager : kind;
}

std::optional<int64_t> Stack::padded_tokens(int64_t tokens) const {
  const auto size = std::lower_bound(graph_sizes.begin(), graph_sizes.end(), tokens);
  return size == graph_sizes.end() ? std::nullopt : std::optional(*size);
}

double Stack::kernel_factor(StepPhase phase) const {
  const auto found = costs.kernel_factor.find(phase);
  return found == costs.kernel_factor.end() ? 1 : found->second;
}

double Stack::kernel_factor(StepPhase phase, const KernelShape& shape) const {
  if (std::holds_alternative<CollectiveShape>(shape)) return costs.collective_factor;
  if (is_attention(shape)) return kernel_factor(phase) * costs.attention_factor;
  if (std::holds_alternative<MoeShape>(shape)) return kernel_factor(phase) * costs.expert_factor;
  return kernel_factor(phase);
}

Stack parse_stack(std::string_view text, const std::string& source, const StackFinder& find) {
  const Json document = parse_json(text, source, {.max_bytes = size_t{4} << 20});
  const JsonView root(document, source);
  Stack stack = StackReader(root).read();
  if (const auto extends = root.find("extends")) {
    if (!find) extends->fail("no other stack here");
    const Stack base = find(extends->string());
    if (!root.has("dispatch")) stack.dispatch = base.dispatch;
    const auto costs = root.find("costs");
    stack.costs = costs ? read_costs(*costs, base.costs) : base.costs;
    if (!root.has("graph_sizes")) stack.graph_sizes = base.graph_sizes;
    if (!root.has("tuned_linears")) stack.tuned_linears = base.tuned_linears;
    if (!root.has("tuned_experts")) stack.tuned_experts = base.tuned_experts;
    if (!root.has("split_mixed_attention")) stack.split_mixed_attention = base.split_mixed_attention;
    if (!root.has("graphs_of_sequences")) stack.graphs_of_sequences = base.graphs_of_sequences;
    if (!root.has("asynchronous")) stack.asynchronous = base.asynchronous;
    if (!root.has("side_stream_tokens")) stack.side_stream_tokens = base.side_stream_tokens;
    for (const auto& [family, variant] : base.kernels) stack.kernels.try_emplace(family, variant);
    stack.rules.insert(stack.rules.end(), base.rules.begin(), base.rules.end());
  }
  return stack;
}

Stack read_stack(const std::filesystem::path& file, const std::filesystem::path& shipped) {
  constexpr size_t largest = size_t{4} << 20;
  // A chain of stacks ends: each extends one that was not in it before.
  std::vector<std::filesystem::path> chain = {file};
  StackFinder base_of = [&](const std::string& name) {
    // Beside the one that asks; a copy under a shipped name extends what it was copied from.
    const std::filesystem::path known = shipped / (name + ".json");
    std::filesystem::path base = chain.back().parent_path() / (name + ".json");
    const bool is_own = base == chain.back() || !std::filesystem::exists(base);
    if (is_own && !shipped.empty() && std::filesystem::exists(known)) base = known;
    if (std::find(chain.begin(), chain.end(), base) != chain.end()) {
      throw InputError({.source = chain.back().string(),
                        .path = "extends",
                        .value = printable(name),
                        .expected = "a stack that does not extend this one"});
    }
    chain.push_back(base);
    return parse_stack(read_file(base, largest), base.string(), base_of);
  };
  return parse_stack(read_file(file, largest), file.string(), base_of);
}

std::vector<std::string> StackCatalogue::names() const {
  return file_stems(folder_);
}

Stack StackCatalogue::stack(const std::string& name) const {
  if (HardwareCatalogue::is_path(name)) return read_stack(name, folder_);
  const std::vector<std::string> known = names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw InputError({.field = "stack",
                      .value = printable(name),
                      .expected = fmt::format("one of {}, or a stack file", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }
  return read_stack(folder_ / (name + ".json"), folder_);
}

StackCatalogue stacks_of(const Library& library) {
  return StackCatalogue(library.directory() / "stacks");
}

}  // namespace foretoken
