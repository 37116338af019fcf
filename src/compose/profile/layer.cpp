#include "compose/profile/layer.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

// Kernels [first, last) of the step.
struct Stretch {
  size_t first = 0, last = 0;
  size_t size() const { return last - first; }
};

class LayerFinder {
 public:
  explicit LayerFinder(const ProfiledStep& step) : step_(step) {}

  ProfiledLayer find() {
    layer_.intervals = host_intervals_us(step_);
    classify();
    find_attentions();
    choose_layer();
    measure_attention();
    split_layer();
    find_start();
    layer_.layers = attentions_.size();
    return std::move(layer_);
  }

 private:
  [[noreturn]] void fail(const std::string& value, const std::string& expected) const {
    throw InputError({.source = step_.source,
                      .path = "traceEvents",
                      .value = value,
                      .expected = expected + ", or {costs_only}: launch costs and gaps of any trace"});
  }

  const ProfiledOperator* call_of(size_t kernel) const {
    const auto call = step_.kernels[kernel].call;
    return call ? &step_.operators[*call] : nullptr;
  }

  void classify() {
    bool trained = false;
    size_t named = 0;
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      layer_.classes.push_back(classify_kernel(step_.kernels[i], call_of(i)));
      if (step_.kernels[i].call) ++named;
      if (step_.kernels[i].backward && !trained) {
        trained = true;
        end_ = i;
      }
    }
    if (!trained) end_ = step_.kernels.size();
    if (trained) layer_.phase = StepPhase::train;
    if (named * 2 < step_.kernels.size()) {
      fail(fmt::format("{} of {} kernels have an operator", named, step_.kernels.size()),
           step_.graph
               ? "a trace of the same code without CUDA graphs: kernels of a graph do not record what launched them"
               : "a trace taken with ProfilerActivity.CPU and ProfilerActivity.CUDA");
    }
  }

  void find_attentions() {
    std::optional<size_t> call;
    for (size_t i = 0; i < end_; ++i) {
      if (layer_.classes[i].role != KernelRole::attention) continue;
      const bool same = call && step_.kernels[i].call == call && !attentions_.empty();
      if (same) {
        attentions_.back().last = i + 1;
      } else {
        attentions_.push_back({i, i + 1});
      }
      call = step_.kernels[i].call;
    }
    // Fills that an attention starts with belong to it.
    for (Stretch& one : attentions_) {
      while (one.first > 0 && step_.kernels[one.first - 1].call == step_.kernels[one.first].call &&
             step_.kernels[one.first].call) {
        --one.first;
      }
    }
    if (attentions_.size() < 2) {
      fail(fmt::format("{} attention calls", attentions_.size()),
           "at least two layers with scaled_dot_product_attention or a flash attention kernel");
    }
  }

  // Layers mostly run the same kernels; the most frequent sequence stands for all.
  void choose_layer() {
    std::map<std::vector<std::string>, std::vector<Stretch>> by_kernels;
    for (size_t i = 0; i + 1 < attentions_.size(); ++i) {
      const Stretch stretch{attentions_[i].last, attentions_[i + 1].last};
      std::vector<std::string> signature;
      for (size_t k = stretch.first; k < stretch.last; ++k) {
        signature.push_back(fmt::format("{} {}", kernel_role_name(layer_.classes[k].role), layer_.classes[k].variant));
      }
      by_kernels[signature].push_back(stretch);
    }
    size_t most = 0;
    for (const auto& [signature, stretches] : by_kernels) {
      if (stretches.size() <= most) continue;
      most = stretches.size();
      same_ = stretches;
    }
    stretch_ = same_.front();
  }

  void measure_attention() {
    const ProfiledOperator* call = call_of(stretch_.last - 1);
    // [batch, heads, length, head_dim], as scaled_dot_product_attention takes them.
    const bool sized =
        call != nullptr && call->dims.size() >= 2 && call->dims[0].size() == 4 && call->dims[1].size() == 4;
    if (!sized) {
      fail(call == nullptr ? "no operator" : call->name,
           "sizes of queries and keys (record_shapes=True), as [batch, heads, length, head_dim]");
    }
    const std::vector<int64_t>&query = call->dims[0], &key = call->dims[1];
    layer_.batch = query[0], layer_.heads = query[1], layer_.q_len = query[2], layer_.head_dim = query[3];
    layer_.kv_heads = key[1], layer_.kv_len = key[2];
    layer_.dtype = layer_.classes[stretch_.last - 1].dtype;
    if (layer_.phase != StepPhase::train && layer_.q_len == 1) layer_.phase = StepPhase::decode;
  }

  struct Multiply {
    Stretch kernels;
    MultiplySize size;
  };

  std::vector<Multiply> multiplies_in(Stretch stretch) const {
    std::vector<Multiply> result;
    for (size_t i = stretch.first; i < stretch.last; ++i) {
      const ProfiledOperator* call = call_of(i);
      if (layer_.classes[i].role != KernelRole::multiply || call == nullptr) continue;
      const auto size = multiply_size(*call);
      if (!size) fail(call->name, "sizes of the multiplied tensors (record_shapes=True)");
      const bool same = !result.empty() && step_.kernels[result.back().kernels.first].call == step_.kernels[i].call;
      if (same) {
        result.back().kernels.last = i + 1;
      } else {
        result.push_back({{i, i + 1}, *size});
      }
    }
    return result;
  }

  void split_layer() {
    const std::vector<Multiply> all = multiplies_in(stretch_);
    if (all.empty()) fail("no multiply between two attentions", "an output projection behind each attention");
    layer_.hidden = all[0].size.n;
    size_t down = 0;
    for (size_t i = 1; i < all.size() && down == 0; ++i) {
      if (all[i].size.n == layer_.hidden && all[i].size.k != layer_.hidden) down = i;
    }
    if (down < 2 || down + 1 >= all.size()) {
      fail(fmt::format("{} multiplies in a layer", all.size()),
           "an output projection, one or two multiplies to a wider size, one back, then queries, keys and values (a "
           "dense feed-forward block; expert layers are not supported)");
    }
    layer_.inter = all[down].size.k;
    layer_.feed_in_multiplies = down - 1;
    for (size_t i = down + 1; i < all.size(); ++i) layer_.qkv_sizes.push_back(all[i].size);
    const size_t attention = stretch_.last - attention_length();
    for (size_t k = stretch_.first; k < stretch_.last; ++k) {
      if (k >= attention) {
        add(layer_.attention, k);
      } else if (k < all[0].kernels.last) {
        add(layer_.output_projection, k);
      } else if (inside(all, 1, down, k)) {
        add(layer_.feed_in, k);
      } else if (k < all[1].kernels.first) {
        add(layer_.post_attention_norm, k);
      } else if (k < all[down].kernels.first) {
        add(layer_.activation, k);
      } else if (k < all[down].kernels.last) {
        add(layer_.feed_out, k);
      } else if (k < all[down + 1].kernels.first) {
        add(layer_.input_norm, k);
      } else if (inside(all, down + 1, all.size(), k)) {
        add(layer_.qkv, k);
      } else {
        add(is_cache(k) ? layer_.cache : layer_.rotary, k);
      }
    }
  }

  size_t attention_length() const {
    for (const Stretch& one : attentions_) {
      if (one.last == stretch_.last) return one.size();
    }
    return 1;
  }

  static bool inside(const std::vector<Multiply>& all, size_t first, size_t last, size_t kernel) {
    for (size_t i = first; i < last; ++i) {
      if (kernel >= all[i].kernels.first && kernel < all[i].kernels.last) return true;
    }
    return false;
  }

  // Keys and values on their way into the cache or, repeated, out of it: copies, and concatenations of unlike tensors
  // (halves of a rotation are alike).
  bool is_cache(size_t kernel) const {
    const KernelClass& kind = layer_.classes[kernel];
    const ProfiledOperator* call = call_of(kernel);
    if (call == nullptr || kind.role != KernelRole::elementwise) return kind.role == KernelRole::driver;
    if (kind.variant == "torch_cat") return call->dims.size() >= 2 && call->dims[0] != call->dims[1];
    for (const std::string_view name :
         {"copy_", "index_copy", "index_put", "clone", "contiguous", "reshape", "repeat"}) {
      if (call->name.find(name) != std::string::npos) return true;
    }
    return false;
  }

  void add(LayerPart& part, size_t kernel) {
    part.kernels.push_back(kernel);
    std::vector<double> times;
    for (const Stretch& stretch : same_) {
      if (const auto time = layer_.intervals[stretch.first + (kernel - stretch_.first)]) times.push_back(*time);
    }
    if (!times.empty()) part.host_us += quantile(times, 0.5);
  }

  // What runs before the first layer, the norm of that layer aside: a norm without the residual sum.
  void find_start() {
    const std::vector<Multiply> all = multiplies_in({0, attentions_[0].first});
    if (all.size() < layer_.qkv_sizes.size()) return;
    const size_t first = all[all.size() - layer_.qkv_sizes.size()].kernels.first;
    size_t norm = 0;
    for (const size_t kernel : layer_.input_norm.kernels) norm += adds_residual(kernel) ? 0 : 1;
    std::vector<double> times;
    for (size_t k = 1; k < first; ++k) times.push_back(layer_.intervals[k].value_or(0));
    const double usual = times.empty() ? 0 : quantile(times, 0.5);
    for (size_t k = 0; k + norm < first; ++k) {
      layer_.start.kernels.push_back(k);
      // The profiler's own buffers are set up in between.
      layer_.start.host_us += std::min(layer_.intervals[k].value_or(0), 5 * usual);
    }
  }

  bool adds_residual(size_t kernel) const {
    const ProfiledOperator* call = call_of(kernel);
    return call != nullptr && call->name.find("add") != std::string::npos &&
           layer_.classes[kernel].variant == "torch_add";
  }

  const ProfiledStep& step_;
  ProfiledLayer layer_;
  size_t end_ = 0;  // of the forward pass
  std::vector<Stretch> attentions_;
  std::vector<Stretch> same_;  // layers like the chosen one
  Stretch stretch_;            // that layer: behind one attention to the end of the next
};

}  // namespace

ProfiledLayer find_layer(const ProfiledStep& step) {
  return LayerFinder(step).find();
}

}  // namespace foretoken
