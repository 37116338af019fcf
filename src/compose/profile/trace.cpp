#include "compose/profile/trace.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace foretoken {
namespace {

constexpr JsonLimits limits{.max_bytes = size_t{512} << 20, .max_depth = 64, .max_values = 40'000'000};
constexpr Range<double> moments{-1e18, 1e18};

// A call of the CUDA runtime or driver that started device work.
struct HostCall {
  int64_t thread = 0;
  double start_us = 0;
  bool graph = false;
};

bool wraps(std::string_view name) {
  for (const std::string_view start : {"Torch-Compiled Region", "autograd::engine", "ProfilerStep", "CompiledFunction",
                                       "## ", "nn.Module", "PythonSubclass"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

class TraceReader {
 public:
  explicit TraceReader(const JsonView& root) : root_(root) {}

  ProfiledStep read() {
    step_.source = root_.source();
    const bool bare = root_.is(Json::Kind::array);
    if (!bare) {
      read_device();
      read_job();
    }
    const JsonView events = bare ? root_ : root_.at("traceEvents");
    for (const JsonView& event : events.items()) read_event(event);
    if (step_.kernels.empty()) {
      events.fail("events of category kernel: a trace taken with ProfilerActivity.CUDA");
    }
    note_messages();
    place_launches();
    std::stable_sort(step_.kernels.begin(), step_.kernels.end(),
                     [](const ProfiledKernel& a, const ProfiledKernel& b) { return a.start_us < b.start_us; });
    return std::move(step_);
  }

 private:
  void read_device() {
    const auto devices = root_.find("deviceProperties");
    if (!devices || !devices->is(Json::Kind::array) || devices->items().empty()) return;
    const JsonView first = devices->items().front();
    if (!first.is(Json::Kind::object)) return;
    if (const auto name = first.find("name")) step_.device = name->string();
  }

  void read_job() {
    const auto job = root_.find("distributedInfo");
    if (!job || !job->is(Json::Kind::object)) return;
    constexpr int64_t most_ranks = 1 << 22;
    if (const auto rank = job->find("rank")) step_.rank = rank->integer({.least = 0, .most = most_ranks});
    if (const auto ranks = job->find("world_size")) step_.ranks = ranks->integer({.least = 0, .most = most_ranks});
  }

  void read_event(const JsonView& event) {
    const auto phase = event.find("ph");
    const auto category = event.find("cat");
    if (!phase || !category || phase->string() != "X") return;
    const std::string kind = category->string();
    if (kind == "cpu_op") {
      read_operator(event);
    } else if (kind == "cuda_runtime" || kind == "cuda_driver") {
      if (const auto correlation = argument(event, "correlation")) {
        const bool graph = event.at("name").string().find("GraphLaunch") != std::string::npos;
        step_.graph = step_.graph || graph;
        calls_[correlation->integer()] = {
            .thread = thread_of(event), .start_us = event.at("ts").number(moments), .graph = graph};
      }
    } else if (kind == "kernel" || kind == "gpu_memcpy" || kind == "gpu_memset") {
      ProfiledKernel kernel{.name = event.at("name").string(),
                            .start_us = event.at("ts").number(moments),
                            .us = event.at("dur").number({0, 1e12}),
                            .copies = kind != "kernel"};
      if (const auto stream = argument(event, "stream")) kernel.stream = stream->integer();
      if (const auto arguments = event.find("args")) kernel.message = read_message(*arguments);
      const auto caller = argument(event, "External id");
      callers_.push_back(caller ? std::optional(caller->integer()) : std::nullopt);
      const auto correlation = argument(event, "correlation");
      correlations_.push_back(correlation ? std::optional(correlation->integer()) : std::nullopt);
      step_.kernels.push_back(std::move(kernel));
    }
  }

  // Newer versions of PyTorch note a message on its kernel, older ones on the operator that launched it only.
  void note_messages() {
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      ProfiledKernel& kernel = step_.kernels[i];
      if (kernel.message || !callers_[i] || kernel.name.find("nccl") == std::string::npos) continue;
      const auto found = messages_.find(*callers_[i]);
      if (found != messages_.end()) kernel.message = found->second;
    }
  }

  void read_operator(const JsonView& event) {
    if (event.at("name").string() == "record_param_comms") {
      const auto caller = argument(event, "External id");
      const auto arguments = event.find("args");
      std::optional<ProfiledMessage> message = arguments ? read_message(*arguments) : std::nullopt;
      if (caller && message) messages_[caller->integer()] = std::move(*message);
    }
    ProfiledOperator call{.name = event.at("name").string(),
                          .thread = thread_of(event),
                          .start_us = event.at("ts").number(moments),
                          .us = event.at("dur").number({0, 1e12})};
    if (const auto types = argument(event, "Input type")) {
      for (const JsonView& type : types->items()) call.types.push_back(type.string());
    }
    if (const auto dims = argument(event, "Input Dims")) {
      for (const JsonView& input : dims->items()) {
        if (!input.is(Json::Kind::array)) continue;  // "" for an input that is no tensor, in older traces
        const std::vector<JsonView> items = input.items();
        const bool is_list = !items.empty() && items.front().is(Json::Kind::array);
        if (!is_list) call.dims.push_back(sizes(items));
        for (const JsonView& tensor : items) {
          if (is_list) call.dims.push_back(sizes(tensor.items()));
        }
      }
    }
    step_.operators.push_back(std::move(call));
  }

  static std::vector<int64_t> sizes(const std::vector<JsonView>& items) {
    std::vector<int64_t> result;
    for (const JsonView& item : items) result.push_back(item.integer({0, int64_t{1} << 50}));
    return result;
  }

  static std::optional<JsonView> argument(const JsonView& event, std::string_view key) {
    const auto arguments = event.find("args");
    return arguments ? arguments->find(key) : std::nullopt;
  }

  static int64_t thread_of(const JsonView& event) {
    const auto thread = event.find("tid");
    return thread && thread->is(Json::Kind::integer) ? thread->integer() : 0;
  }

  // Gives every kernel its launch and the operators around that: one walk over operators and launches of each thread
  // by time, with the open operators on a stack.
  void place_launches() {
    std::vector<size_t> launched;
    for (size_t i = 0; i < step_.kernels.size(); ++i) {
      const auto call = correlations_[i] ? calls_.find(*correlations_[i]) : calls_.end();
      if (call == calls_.end()) continue;
      step_.kernels[i].launched_us = call->second.start_us;
      if (!call->second.graph) launched.push_back(i);
    }
    const auto call_of = [&](size_t kernel) { return calls_.at(*correlations_[kernel]); };
    std::stable_sort(launched.begin(), launched.end(), [&](size_t a, size_t b) {
      const HostCall x = call_of(a), y = call_of(b);
      return std::pair(x.thread, x.start_us) < std::pair(y.thread, y.start_us);
    });
    std::vector<size_t> operators(step_.operators.size());
    for (size_t i = 0; i < operators.size(); ++i) operators[i] = i;
    std::stable_sort(operators.begin(), operators.end(), [&](size_t a, size_t b) {
      const ProfiledOperator &x = step_.operators[a], &y = step_.operators[b];
      if (std::pair(x.thread, x.start_us) != std::pair(y.thread, y.start_us)) {
        return std::pair(x.thread, x.start_us) < std::pair(y.thread, y.start_us);
      }
      return x.us > y.us;
    });
    std::vector<size_t> open;
    size_t next = 0;
    for (const size_t kernel : launched) {
      const HostCall launch = call_of(kernel);
      const auto ended = [&](size_t index) {
        const ProfiledOperator& one = step_.operators[index];
        return one.thread != launch.thread || one.start_us + one.us < launch.start_us;
      };
      for (; next < operators.size(); ++next) {
        const ProfiledOperator& one = step_.operators[operators[next]];
        if (std::pair(one.thread, one.start_us) > std::pair(launch.thread, launch.start_us)) break;
        while (!open.empty() &&
               step_.operators[open.back()].start_us + step_.operators[open.back()].us < one.start_us) {
          open.pop_back();
        }
        open.push_back(operators[next]);
      }
      open.erase(std::remove_if(open.begin(), open.end(), ended), open.end());
      for (const size_t index : open) {
        const std::string& name = step_.operators[index].name;
        if (name.starts_with("autograd::engine")) step_.kernels[kernel].backward = true;
        if (!step_.kernels[kernel].call && !wraps(name)) step_.kernels[kernel].call = index;
      }
    }
  }

  const JsonView& root_;
  ProfiledStep step_;
  std::map<int64_t, HostCall> calls_;
  std::vector<std::optional<int64_t>> correlations_;  // of step_.kernels, before they are sorted
  std::vector<std::optional<int64_t>> callers_;       // likewise: the operator that launched it
  std::map<int64_t, ProfiledMessage> messages_;       // by operator
};

}  // namespace

ProfiledStep parse_profile(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, limits);
  const JsonView root(document, source);
  return TraceReader(root).read();
}

ProfiledStep read_profile(const std::filesystem::path& file) {
  return parse_profile(read_file(file, limits.max_bytes), file.string());
}

std::vector<std::optional<double>> host_intervals_us(const ProfiledStep& step) {
  constexpr double recording_us = 4;
  constexpr double least_share = 0.3;  // of what was seen is the program's own, however much was recorded
  std::vector<double> recorded;
  for (const ProfiledOperator& call : step.operators) recorded.push_back(call.start_us);
  std::sort(recorded.begin(), recorded.end());
  std::vector<size_t> launched;  // in the order of the host, which is not that of several streams
  for (size_t i = 0; i < step.kernels.size(); ++i) {
    if (step.kernels[i].launched_us) launched.push_back(i);
  }
  std::stable_sort(launched.begin(), launched.end(),
                   [&](size_t a, size_t b) { return *step.kernels[a].launched_us < *step.kernels[b].launched_us; });
  std::vector<std::optional<double>> result(step.kernels.size());
  for (size_t i = 1; i < launched.size(); ++i) {
    const double before = *step.kernels[launched[i - 1]].launched_us, now = *step.kernels[launched[i]].launched_us;
    const double seen = now - before;
    const auto records = std::upper_bound(recorded.begin(), recorded.end(), now) -
                         std::upper_bound(recorded.begin(), recorded.end(), before);
    result[launched[i]] = std::max(least_share * seen, seen - recording_us * static_cast<double>(records));
  }
  return result;
}

}  // namespace foretoken
