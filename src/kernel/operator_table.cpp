#include "kernel/operator_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "model/work.h"

namespace foretoken {
namespace {

struct Format {
  OperatorTableKind kind;
  std::vector<std::string_view> sizes;  // columns
  std::string_view time;
  bool has_op = true;
  std::vector<std::string_view> words = {};  // further columns
};

// First format whose columns are all there wins.
const std::vector<Format>& formats() {
  static const std::vector<Format> list = {
      {OperatorTableKind::neusight_trace, {"fw_ops", "in_shapes"}, "fw_us"},
      {OperatorTableKind::neusight_matmul, {"batch", "m", "n", "k"}, "latency_us"},
      {OperatorTableKind::neusight_vector, {"rows", "cols"}, "latency_us"},
      {OperatorTableKind::neusight_conv,
       {"batch", "cin", "cout", "ksize", "in_size", "stride", "pad"},
       "latency_us",
       false},
      {OperatorTableKind::llmcompass, {"m", "n", "k"}, "latency_ms"},
      {OperatorTableKind::aiter_gemm, {"m", "n", "k"}, "latency_us", false, {"dtype"}},
      {OperatorTableKind::aiter_moe,
       {"tokens", "hidden", "inter", "topk", "experts"},
       "latency_us",
       false,
       {"dtype_a", "dtype_w", "scales", "gated", "one_kernel"}},
  };
  return list;
}

// How an operation element by element reads and computes. A power is an exponential and a logarithm with care for
// special cases: about a hundred instructions.
struct Elementwise {
  std::string_view name;
  int inputs = 1;
  double flops = 1;
};
constexpr Elementwise elementwise_ops[] = {{"add", 2}, {"mul", 2}, {"div", 2}, {"pow", 2, 100},
                                           {"addu"},   {"mulu"},   {"divu"},   {"powu", 1, 100}};
constexpr std::string_view activation_ops[] = {"relu", "gelu", "tanh"};

const Elementwise* find_elementwise(std::string_view op) {
  for (const Elementwise& known : elementwise_ops) {
    if (known.name == op) return &known;
  }
  return nullptr;
}

std::string_view vector_family(std::string_view op) {
  if (find_elementwise(op) != nullptr) return "elementwise";
  if (std::find(std::begin(activation_ops), std::end(activation_ops), op) != std::end(activation_ops))
    return "activation";
  if (op == "softmax") return "softmax";
  return op == "ln" || op == "layernorm" ? "norm" : "";
}

std::string_view without_vec(std::string_view op) {
  return op.starts_with("VEC") ? op.substr(3) : op;
}

KernelShape vector_shape(std::string_view op, int64_t rows, int64_t columns, DType dtype) {
  if (const Elementwise* known = find_elementwise(op)) {
    return ElementwiseShape{
        .elements = rows * columns, .inputs = known->inputs, .flops_per_element = known->flops, .dtype = dtype};
  }
  if (op == "softmax") return SoftmaxShape{.rows = rows, .width = columns, .dtype = dtype};
  if (op == "ln" || op == "layernorm") {
    return NormShape{.rows = rows, .width = columns, .layer_norm = true, .dtype = dtype};
  }
  return ActivationShape{.rows = rows, .width = columns, .gated = false, .dtype = dtype};
}

// Every whole number of "[['BMM';(256;512;64;512)]]". At most eight, none beyond 10^12.
std::vector<int64_t> numbers_in(std::string_view text) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < text.size() && numbers.size() < 8;) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    if (error == std::errc() && value > 0 && value < 1'000'000'000'000) numbers.push_back(value);
    i = end > text.data() + i ? static_cast<size_t>(end - text.data()) : i + 1;
  }
  return numbers;
}

// Elements of all tensors in "[(16;16;512;512);(16;1;1;512)]".
double elements_of(std::string_view shapes) {
  double total = 0;
  for (size_t open = shapes.find('('); open != std::string_view::npos; open = shapes.find('(', open + 1)) {
    double elements = 1;
    for (const int64_t size : numbers_in(shapes.substr(open, shapes.find(')', open) - open))) {
      elements *= static_cast<double>(size);
    }
    total += elements;
  }
  return total;
}

// torch.matmul on operands of four dimensions copies those that are views with heads and tokens swapped, to make one
// batch of both; the probabilities, the larger operand where there is one, already lie in order.
int64_t copied_elements(std::string_view inputs) {
  const size_t split = inputs.find(");(");
  if (split == std::string_view::npos) return 0;
  const std::string_view first = inputs.substr(0, split + 1), second = inputs.substr(split + 2);
  if (numbers_in(first).size() != 4 || numbers_in(second).size() != 4) return 0;
  const double one = elements_of(first), other = elements_of(second);
  return static_cast<int64_t>(one == other ? one + other : std::min(one, other));
}

std::optional<KernelShape> traced_shape(std::string_view op, std::string_view call, std::string_view inputs,
                                        std::string& why) {
  const std::vector<int64_t> sizes = numbers_in(call.substr(std::min(call.find('('), call.size())));
  const auto expect = [&](size_t count) {
    if (sizes.size() != count) why = fmt::format("fw_ops = {}: expected {} sizes", printable(call), count);
    return sizes.size() == count;
  };
  if (op == "Linear") {
    if (!expect(3)) return std::nullopt;
    return GemmShape{.m = sizes[0], .n = sizes[2], .k = sizes[1], .scheme = Scheme::fp32};
  }
  if (op == "BMM") {
    if (!expect(4)) return std::nullopt;
    return GemmShape{.m = sizes[1], .n = sizes[3], .k = sizes[2], .batch = sizes[0], .scheme = Scheme::fp32};
  }
  if (!expect(2)) return std::nullopt;
  KernelShape shape = vector_shape(without_vec(op), sizes[0], sizes[1], DType::fp32);
  // A tensor that is broadcast is hardly read.
  if (auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
    const double tensors = elements_of(inputs) / static_cast<double>(elementwise->elements);
    elementwise->inputs = std::max<int64_t>(1, static_cast<int64_t>(std::lround(tensors)));
  }
  return shape;
}

// How the tables of AMD's tuner name the formats of a multiply.
struct TunedFormat {
  std::string_view activations, weights, scales;  // no scales: any
  Scheme scheme;
  std::string_view kernel = "";  // set apart from others of the scheme
};
constexpr TunedFormat tuned_formats[] = {
    {"bf16", "bf16", "", Scheme::bf16},
    {"fp16", "fp16", "", Scheme::fp16},
    {"fp8", "fp8", "per_1x128", Scheme::fp8_block},
    {"fp8", "fp8", "per_1x32", Scheme::fp8, "_mxfp8"},
    {"fp8", "fp8", "", Scheme::fp8},
    {"int8", "int8", "", Scheme::int8},
    {"bf16", "int4", "", Scheme::int4_wo},
    {"bf16", "fp4", "", Scheme::mxfp4_wo},
    {"fp8", "fp4", "", Scheme::mxfp4_mxfp8},
    {"fp4", "fp4", "", Scheme::mxfp4},
};

}  // namespace

std::optional<OperatorTableKind> operator_table_kind(const std::vector<std::string>& columns) {
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  for (const Format& format : formats()) {
    if (has("device") && has(format.time) && (!format.has_op || has("op")) &&
        std::all_of(format.sizes.begin(), format.sizes.end(), has) &&
        std::all_of(format.words.begin(), format.words.end(), has))
      return format.kind;
  }
  return std::nullopt;
}

OperatorRowReader::OperatorRowReader(OperatorTableKind kind, const CsvReader& csv) : kind_(kind) {
  const auto found = std::find_if(formats().begin(), formats().end(), [&](const Format& f) { return f.kind == kind; });
  ensure(found != formats().end(), "every kind of table has a format");
  device_ = csv.column("device");
  time_ = csv.column(found->time);
  if (found->time.ends_with("_ms")) to_us_ = 1000;
  if (found->has_op) op_ = csv.column("op");
  for (const std::string_view name : found->sizes) sizes_.push_back(csv.column(name));
  for (const std::string_view name : found->words) words_.push_back(csv.column(name));
}

std::string_view OperatorRowReader::op(const CsvReader& csv) const {
  return op_ ? csv.cell(*op_) : std::string_view("conv");
}

std::string_view OperatorRowReader::family(const CsvReader& csv) const {
  const std::string_view name = op(csv);
  switch (kind_) {
    case OperatorTableKind::neusight_matmul:
      return name == "linear" || name == "bmm" ? "gemm" : "";
    case OperatorTableKind::neusight_vector:
      return vector_family(name);
    case OperatorTableKind::neusight_conv:
      return "conv";
    case OperatorTableKind::neusight_trace:
      if (name == "Linear" || name == "BMM") return "gemm";
      return name.starts_with("VEC") ? vector_family(without_vec(name)) : "";
    case OperatorTableKind::llmcompass:
      return name == "matmul" ? "gemm" : vector_family(name);
    case OperatorTableKind::aiter_gemm:
      return "gemm";
    case OperatorTableKind::aiter_moe:
      return "moe";
  }
  return {};
}

int64_t OperatorRowReader::size(const CsvReader& csv, size_t column) const {
  return csv.integer(sizes_[column], {.least = 1, .most = 1'000'000'000'000});
}

// The fastest of many trials: where one of them was broken, it won.
std::optional<OperatorRow> OperatorRowReader::tuned_gemm(const CsvReader& csv, std::string& why) const {
  const std::string_view dtype = csv.cell(words_[0]);
  const std::optional<Scheme> scheme = dtype == "mxfp4" ? Scheme::mxfp4 : scheme_from_name(dtype);
  if (!scheme) {
    why = fmt::format("dtype = {}: not a known format", printable(dtype));
    return std::nullopt;
  }
  return OperatorRow{.shape = GemmShape{.m = size(csv, 0), .n = size(csv, 1), .k = size(csv, 2), .scheme = *scheme},
                     .variant = "aiter",
                     .tuned = true};
}

std::optional<OperatorRow> OperatorRowReader::tuned_experts(const CsvReader& csv, std::string& why) const {
  const std::string_view activations = csv.cell(words_[0]), weights = csv.cell(words_[1]), scales = csv.cell(words_[2]);
  const auto format = std::find_if(std::begin(tuned_formats), std::end(tuned_formats), [&](const TunedFormat& f) {
    return f.activations == activations && f.weights == weights && (f.scales.empty() || f.scales == scales);
  });
  if (format == std::end(tuned_formats)) {
    why = fmt::format("dtype_a = {}, dtype_w = {}: not a known pair of formats", printable(activations),
                      printable(weights));
    return std::nullopt;
  }
  const int64_t top_k = size(csv, 3), experts = size(csv, 4);
  if (top_k > experts) {
    why = fmt::format("topk = {}: expected at most the number of experts", top_k);
    return std::nullopt;
  }
  const bool one_kernel = csv.integer(words_[4], {.least = 0, .most = 1}) == 1;
  return OperatorRow{.shape = MoeShape{.tokens = size(csv, 0),
                                       .hidden = size(csv, 1),
                                       .inter = size(csv, 2),
                                       .top_k = top_k,
                                       .experts = experts,
                                       .gated = csv.cell(words_[3]) == "True",
                                       .routing = Routing::random,
                                       .scheme = format->scheme},
                     .variant = fmt::format("{}{}", one_kernel ? "aiter_1stage" : "aiter_2stages", format->kernel),
                     .tuned = true};
}

std::optional<OperatorRow> OperatorRowReader::read(const CsvReader& csv, std::string& why) const {
  constexpr double least_tuned_us = 1.5;  // below it no launch ends
  if (kind_ == OperatorTableKind::aiter_gemm || kind_ == OperatorTableKind::aiter_moe) {
    if (measured_us(csv) < least_tuned_us) {
      why = fmt::format("latency_us = {}: below what a launch takes, no timing", measured_us(csv));
      return std::nullopt;
    }
    return kind_ == OperatorTableKind::aiter_gemm ? tuned_gemm(csv, why) : tuned_experts(csv, why);
  }
  const std::string_view name = op(csv);
  if (family(csv).empty()) {
    why = fmt::format("op = {}: no kernel of one device", printable(name));
    return std::nullopt;
  }
  OperatorRow row{.variant = fmt::format("eager {}", without_vec(name))};
  switch (kind_) {
    case OperatorTableKind::neusight_matmul:
      row.shape = GemmShape{
          .m = size(csv, 1), .n = size(csv, 2), .k = size(csv, 3), .batch = size(csv, 0), .scheme = Scheme::fp32};
      break;
    case OperatorTableKind::neusight_vector:
      row.shape = vector_shape(name, size(csv, 0), size(csv, 1), DType::fp32);
      break;
    case OperatorTableKind::neusight_conv: {
      const int64_t kernel = size(csv, 3), image = size(csv, 4), stride = size(csv, 5);
      const int64_t padding = csv.integer(sizes_[6], {.least = 0, .most = 1'000'000});
      if (convolved_size(image, kernel, stride, padding, 1) <= 0) {
        why = fmt::format("ksize = {}: expected a kernel no larger than the padded image", kernel);
        return std::nullopt;
      }
      row.shape = ConvShape{.batch = size(csv, 0),
                            .in_channels = size(csv, 1),
                            .out_channels = size(csv, 2),
                            .height = image,
                            .width = image,
                            .kernel_height = kernel,
                            .kernel_width = kernel,
                            .stride = stride,
                            .padding = padding,
                            .scheme = Scheme::fp32};
      break;
    }
    case OperatorTableKind::neusight_trace: {
      const std::optional<KernelShape> shape = traced_shape(name, csv.cell(sizes_[0]), csv.cell(sizes_[1]), why);
      if (!shape) return std::nullopt;
      if (std::holds_alternative<GemmShape>(*shape)) {
        row.variant = "eager";  // another host than the sweep's
        row.copied = copied_elements(csv.cell(sizes_[1]));
      }
      row.shape = *shape;
      break;
    }
    case OperatorTableKind::llmcompass:
      if (name == "matmul") {
        row.shape = GemmShape{.m = size(csv, 0), .n = size(csv, 1), .k = size(csv, 2), .scheme = Scheme::fp16};
      } else {
        // gelu gives its elements alone: rows of 1024 do for an operation element by element.
        constexpr int64_t row_length = 1024;
        const int64_t first = size(csv, 0);
        const bool flat = csv.cell(sizes_[1]).empty();
        const int64_t rows = flat ? std::max<int64_t>(1, first / row_length) : first;
        row.shape = vector_shape(name, rows, flat ? first / rows : size(csv, 1), DType::fp16);
      }
      break;
    case OperatorTableKind::aiter_gemm:
    case OperatorTableKind::aiter_moe:
      break;  // above
  }
  return row;
}

double OperatorRowReader::measured_us(const CsvReader& csv) const {
  return csv.number(time_) * to_us_;
}

}  // namespace foretoken
