#include "kernel/edge/edge_predictor_file.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "kernel/calibration_parts.h"

namespace foretoken {
namespace {

constexpr const char* file_kind = "edge_predictor";

// One kernel of each kind, of the sizes of a small network.
std::vector<EdgeKernel> checked_kernels() {
  const ConvolutionSizes dense{.in_channels = 64,
                               .out_channels = 130,
                               .in_height = 28,
                               .in_width = 28,
                               .out_height = 14,
                               .out_width = 14,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .stride = 2,
                               .activation = EdgeActivation::relu};
  ConvolutionSizes depthwise = dense;
  depthwise.groups = depthwise.out_channels = dense.in_channels;
  depthwise.activation = EdgeActivation::swish;
  const ProductSizes product{.batch = 1, .m = 50, .k = 300, .n = 70};
  const TensorSizes tensor{.elements = 60000, .rows = 50, .outputs = 15000, .window = 2};
  std::vector<EdgeKernel> kernels = {edge_convolution(dense), edge_convolution(depthwise)};
  for (const EdgeKernelKind kind : {EdgeKernelKind::linear, EdgeKernelKind::gemv, EdgeKernelKind::batched_matmul})
    kernels.push_back(edge_product(kind, product));
  for (const EdgeKernel& fp32 : std::vector<EdgeKernel>(kernels)) {
    if (const std::optional<EdgeKernel> int8 = edge_in_int8(fp32)) kernels.push_back(*int8);
    if (const std::optional<EdgeKernel> int4 = edge_in_int4(fp32)) kernels.push_back(*int4);
  }
  for (const EdgeKernelKind kind :
       {EdgeKernelKind::add, EdgeKernelKind::add_relu, EdgeKernelKind::channel_scale, EdgeKernelKind::concat,
        EdgeKernelKind::global_pool, EdgeKernelKind::sigmoid, EdgeKernelKind::max_pool, EdgeKernelKind::scaled_softmax,
        EdgeKernelKind::layer_norm, EdgeKernelKind::gelu, EdgeKernelKind::transpose, EdgeKernelKind::traffic,
        EdgeKernelKind::int8_add, EdgeKernelKind::quantize})
    kernels.push_back(edge_tensor(kind, tensor));
  kernels.push_back({.kind = EdgeKernelKind::empty});
  return kernels;
}

Json prices_json(EdgeKernelKind kind, const EdgeKindPrices& prices) {
  Json list = Json::object();
  const EdgeLaw& law = edge_law(kind);
  for (size_t i = 0; i < law.prices.size(); ++i) {
    list.set(std::string(law.prices[i].name),
             Json::object({{"ns", prices.prices_ns[i]}, {"least", prices.least[i]}, {"most", prices.most[i]}}));
  }
  return Json::object({{"law", law.name},
                       {"rows", prices.rows},
                       {"half_width", prices.half_width},
                       {"cross_validated_mape", prices.cross_validated_mape},
                       {"cross_validated_coverage", prices.cross_validated_coverage},
                       {"prices", std::move(list)}});
}

EdgeKindPrices read_prices(EdgeKernelKind kind, const JsonView& view) {
  view.allow_only({"law", "rows", "half_width", "cross_validated_mape", "cross_validated_coverage", "prices"});
  const EdgeLaw& law = edge_law(kind);
  if (view.at("law").string() != law.name) view.at("law").fail(std::string(law.name));
  constexpr Range<double> percent{.least = 0, .most = 1e6};
  EdgeKindPrices prices{.rows = static_cast<size_t>(view.at("rows").integer({.least = 1, .most = 100'000'000})),
                        .half_width = view.at("half_width").number({.least = 0, .most = 20}),
                        .cross_validated_mape = view.at("cross_validated_mape").number(percent),
                        .cross_validated_coverage = view.at("cross_validated_coverage").number(percent)};
  const JsonView list = view.at("prices");
  if (list.members().size() != law.prices.size())
    list.fail(fmt::format("the {} prices of the law {}: fit it anew", law.prices.size(), law.name));
  for (const EdgePrice& price : law.prices) {
    const JsonView own = list.at(price.name);
    own.allow_only({"ns", "least", "most"});
    prices.prices_ns.push_back(own.at("ns").number({.least = 0, .most = 1e12}));
    prices.least.push_back(own.at("least").number({.least = 0, .most = 1e30}));
    prices.most.push_back(own.at("most").number({.least = 0, .most = 1e30}));
  }
  return prices;
}

Json core_json(const EdgeCore& core) {
  Json json = Json::object({{"cache_bytes", core.cache_bytes},
                            {"tile_rows", core.tile_rows},
                            {"tile_columns", core.tile_columns},
                            {"depth_block", core.depth_block}});
  if (core.last_level_bytes != EdgeCore{}.last_level_bytes) json.set("last_level_bytes", core.last_level_bytes);
  return json;
}

EdgeCore read_core(const JsonView& view) {
  view.allow_only({"cache_bytes", "last_level_bytes", "tile_rows", "tile_columns", "depth_block"});
  constexpr Range<int64_t> size{.least = 1, .most = 1 << 20};
  const std::optional<JsonView> last_level = view.find("last_level_bytes");
  return {.cache_bytes = view.at("cache_bytes").number({.least = 1, .most = 1e12}),
          .last_level_bytes = last_level ? last_level->number({.least = 1, .most = 1e12}) : EdgeCore{}.last_level_bytes,
          .tile_rows = view.at("tile_rows").integer(size),
          .tile_columns = view.at("tile_columns").integer(size),
          .depth_block = view.at("depth_block").integer(size)};
}

EdgeCallCosts read_calls(const JsonView& view) {
  view.allow_only({"node_ns", "setup_ns", "copy_near_ns", "copy_far_ns"});
  constexpr Range<double> price{.least = 0, .most = 1e9}, difference{.least = -1e9, .most = 1e9};
  const std::optional<JsonView> setup = view.find("setup_ns");
  return {.node_ns = view.at("node_ns").number(price),
          .setup_ns = setup ? setup->number(difference) : 0,
          .copy_near_ns = view.at("copy_near_ns").number(price),
          .copy_far_ns = view.at("copy_far_ns").number(price)};
}

Json scaling_json(const std::vector<EdgeThreadScaling>& scaling) {
  Json list = Json::array();
  for (const EdgeThreadScaling& own : scaling) {
    Json kinds = Json::object();
    for (const auto& [kind, speedup] : own.kinds) {
      kinds.set(
          std::string(edge_kind_name(kind)),
          Json::object({{"times", speedup.times}, {"wait_ns", speedup.wait_ns}, {"half_width", speedup.half_width}}));
    }
    list.push(Json::object({{"threads", own.threads}, {"kinds", std::move(kinds)}}));
  }
  return list;
}

EdgeKernelKind read_kind_name(const std::string& name, const JsonView& view) {
  const std::optional<EdgeKernelKind> kind = edge_kind_from_name(name);
  if (!kind) view.fail(fmt::format("a kind among {}", fmt::join(edge_kind_names(), ", ")));
  return *kind;
}

EdgeThreadScaling read_scaling(const JsonView& view) {
  view.allow_only({"threads", "kinds"});
  EdgeThreadScaling own{.threads = static_cast<int>(view.at("threads").integer({.least = 1, .most = 4096}))};
  for (const auto& [name, speedup] : view.at("kinds").members()) {
    speedup.allow_only({"times", "wait_ns", "half_width"});
    const std::optional<JsonView> wait = speedup.find("wait_ns");
    own.kinds[read_kind_name(name, speedup)] = {
        .times = speedup.at("times").number({.least = 1e-3, .most = 4096}),
        .wait_ns = wait ? wait->number({.least = 0, .most = 1e9}) : 0,
        .half_width = speedup.at("half_width").number({.least = 0, .most = 20})};
  }
  return own;
}

Json self_check_rows(const EdgePredictor& predictor) {
  Json rows = Json::array();
  for (const EdgeKernel& kernel : checked_kernels()) {
    if (!predictor.knows(kernel)) continue;
    rows.push(Json::object({{"kind", edge_kind_name(kernel.kind)},
                            {"params", edge_parameters(kernel)},
                            {"ms", predictor.kernel_seconds(kernel).value * 1e3}}));
  }
  return rows;
}

void verify_rows(const EdgePredictor& predictor, const JsonView& rows) {
  if (rows.items().empty()) rows.fail("kernels and the times that this file gives for them");
  for (const JsonView& row : rows.items()) {
    row.allow_only({"kind", "params", "ms"});
    const EdgeKernel kernel =
        parse_edge_kernel(row.at("kind").string(), row.at("params").string(), rows.source(), row.value().line());
    const double written = row.at("ms").number(), now = predictor.kernel_seconds(kernel).value * 1e3;
    // Rounding alone: the sum is made of the same operations everywhere.
    if (std::abs(written - now) > 1e-12 * std::abs(now))
      row.at("ms").fail(fmt::format("{}, as this foretoken predicts from the same file: fit it anew", now));
  }
}

}  // namespace

std::string edge_predictor_json(const EdgePredictor& predictor) {
  Json file = calibration_header(file_kind);
  file.set("device", predictor.device)
      .set("runtime", predictor.runtime)
      .set("runtime_version", predictor.runtime_version)
      .set("threads", predictor.threads)
      .set("source", predictor.source)
      .set("fitted_on", predictor.fitted_on)
      .set("cross_validated_mape", predictor.cross_validated_mape)
      .set("cross_validated_coverage", predictor.cross_validated_coverage)
      .set("core", core_json(predictor.core));
  if (predictor.busy_watts) file.set("busy_watts", *predictor.busy_watts);
  if (predictor.calls) {
    Json calls = Json::object({{"node_ns", predictor.calls->node_ns}});
    if (predictor.calls->setup_ns != 0) calls.set("setup_ns", predictor.calls->setup_ns);
    calls.set("copy_near_ns", predictor.calls->copy_near_ns).set("copy_far_ns", predictor.calls->copy_far_ns);
    file.set("calls", std::move(calls));
  }
  if (!predictor.thread_scaling.empty()) file.set("thread_scaling", scaling_json(predictor.thread_scaling));
  Json kinds = Json::object();
  for (const auto& [kind, prices] : predictor.kinds)
    kinds.set(std::string(edge_kind_name(kind)), prices_json(kind, prices));
  file.set("kinds", std::move(kinds));
  file.set("self_check", Json::object({{"digest", digest_of(file)}, {"rows", self_check_rows(predictor)}}));
  return file.dump() + "\n";
}

EdgePredictor parse_edge_predictor(std::string_view text, const std::string& source) {
  const Json file = parse_json(text, source);
  const JsonView view(file, source);
  check_calibration_header(view, file_kind);
  view.allow_only({"kind", "version", "device", "runtime", "runtime_version", "threads", "source", "fitted_on",
                   "cross_validated_mape", "cross_validated_coverage", "core", "busy_watts", "calls", "thread_scaling",
                   "kinds", "self_check"});
  verify_digest(view);
  EdgePredictor predictor{.device = view.at("device").string(),
                          .runtime = view.at("runtime").string(),
                          .runtime_version = view.at("runtime_version").string(),
                          .threads = static_cast<int>(view.at("threads").integer({.least = 1, .most = 4096})),
                          .source = view.at("source").string(),
                          .fitted_on = view.at("fitted_on").string(),
                          .core = read_core(view.at("core")),
                          .cross_validated_mape = view.at("cross_validated_mape").number(),
                          .cross_validated_coverage = view.at("cross_validated_coverage").number()};
  if (const std::optional<JsonView> watts = view.find("busy_watts"))
    predictor.busy_watts = watts->number({.least = 0, .most = 1e6});
  if (const std::optional<JsonView> calls = view.find("calls")) predictor.calls = read_calls(*calls);
  if (const std::optional<JsonView> scaling = view.find("thread_scaling")) {
    for (const JsonView& item : scaling->items()) predictor.thread_scaling.push_back(read_scaling(item));
  }
  for (const auto& [name, kind_view] : view.at("kinds").members()) {
    const EdgeKernelKind kind = read_kind_name(name, kind_view);
    predictor.kinds[kind] = read_prices(kind, kind_view);
  }
  const JsonView check = view.at("self_check");
  check.allow_only({"digest", "rows"});
  verify_rows(predictor, check.at("rows"));
  return predictor;
}

EdgePredictor read_edge_predictor(const std::filesystem::path& path) {
  constexpr size_t most_bytes = size_t{4} << 20;
  return parse_edge_predictor(read_file(path, most_bytes), path.string());
}

}  // namespace foretoken
