// A small profiler trace for tests: layers of a decoder as eager PyTorch runs them.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"

namespace foretoken {

// Writes events one after the other: 10 us of host for each operator, 2 us of device for each kernel.
class TestTrace {
 public:
  static constexpr int64_t batch = 2, length = 16, hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, inter = 128;

  static Json sizes(std::vector<int64_t> dims) {
    Json result = Json::array();
    for (const int64_t size : dims) result.push(size);
    return result;
  }
  static Json hidden_sizes() { return sizes({batch, length, hidden}); }

  // An operator that launches one kernel.
  void run(const std::string& name, std::vector<Json> inputs, const std::string& kernel,
           const std::string& type = "c10::BFloat16") {
    const double start = 10 * static_cast<double>(count_);
    ++count_;
    Json types = Json::array();
    for (size_t i = 0; i < inputs.size(); ++i) types.push(type);
    events_.push(event("cpu_op", name, start, 9)
                     .set("args", Json::object({{"Input Dims", Json::array(std::move(inputs))},
                                                {"Input type", std::move(types)}})));
    const Json correlation = Json::object({{"correlation", count_}});
    events_.push(event("cuda_runtime", "cudaLaunchKernel", start + 5, 2).set("args", correlation));
    events_.push(event("kernel", kernel, start + 12, 2).set("args", correlation));
  }

  void linear(int64_t rows_out, int64_t inner) {
    run("aten::linear", {sizes({batch, length, inner}), sizes({rows_out, inner})}, "nvjet_sm90_tst_64x8");
  }
  void norm() {
    const std::string plain = "void at::native::vectorized_elementwise_kernel<4, f>";
    run("aten::to", {hidden_sizes()}, "void at::native::unrolled_elementwise_kernel<f>");
    run("aten::pow", {hidden_sizes()}, plain, "float");
    run("aten::mean", {hidden_sizes()}, "void at::native::reduce_kernel<512, 1, f>", "float");
    run("aten::rsqrt", {sizes({batch, length, 1})}, plain, "float");
    run("aten::mul", {hidden_sizes(), sizes({batch, length, 1})}, "void at::native::elementwise_kernel<128, 2, f>",
        "float");
    run("aten::to", {hidden_sizes()}, plain, "float");
    run("aten::mul", {sizes({hidden}), hidden_sizes()}, "void at::native::elementwise_kernel<128, 4, f>");
  }
  void residual() {
    run("aten::add", {hidden_sizes(), hidden_sizes()}, "void at::native::vectorized_elementwise_kernel<8, f>");
  }
  void layer() {
    norm();
    linear(heads * head_dim, hidden);
    linear(kv_heads * head_dim, hidden);
    linear(kv_heads * head_dim, hidden);
    const Json query = sizes({batch, heads, length, head_dim}), key = sizes({batch, kv_heads, length, head_dim});
    run("aten::mul", {query, sizes({1, 1, length, head_dim})}, "void at::native::elementwise_kernel<128, 4, f>");
    run("aten::mul", {key, sizes({1, 1, length, head_dim})}, "void at::native::elementwise_kernel<128, 4, f>");
    run("aten::cat", {Json::array({sizes({0}), key})}, "void at::native::CatArrayBatchedCopy<f>");
    run("aten::scaled_dot_product_attention", {query, key, key}, "cudnn_generated_sdpa_flash_fprop");
    linear(hidden, heads * head_dim);
    residual();
    norm();
    linear(inter, hidden);
    run("aten::silu", {sizes({batch, length, inter})}, "void at::native::vectorized_elementwise_kernel<8, f>");
    linear(inter, hidden);
    run("aten::mul", {sizes({batch, length, inter}), sizes({batch, length, inter})},
        "void at::native::vectorized_elementwise_kernel<8, f>");
    linear(hidden, inter);
    residual();
  }
  void model(int layers) {
    run("aten::embedding", {sizes({1000, hidden}), sizes({batch, length})},
        "void at::native::indexSelectSmallIndex<f>");
    run("aten::cos", {sizes({1, length, head_dim})}, "void at::native::vectorized_elementwise_kernel<4, f>", "float");
    for (int i = 0; i < layers; ++i) layer();
    norm();
    linear(1000, hidden);
    run("aten::argmax", {sizes({batch, 1000})}, "void at::native::reduce_kernel<512, 1, f>");
  }

  std::string text() const { return Json::object({{"traceEvents", events_}}).dump(0); }

 private:
  static Json event(const std::string& category, const std::string& name, double start, double duration) {
    return Json::object(
        {{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", 1}, {"tid", 1}, {"ts", start}, {"dur", duration}});
  }
  Json events_ = Json::array();
  int64_t count_ = 0;
};

inline std::string test_trace(int layers) {
  TestTrace trace;
  trace.model(layers);
  return trace.text();
}

}  // namespace foretoken
