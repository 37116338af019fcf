// Networks of two search spaces on 19 devices (HELP's tables) as the kernels that they run: what ten timings of some
// say about others, of the same space and of the other one.
#include "kernel/edge/adapt_edge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "base/random.h"
#include "kernel/edge/edge_predictor_file.h"
#include "kernel/edge/edge_rows.h"
#include "kernel/fewshot/latency_table.h"

namespace foretoken::adapt_edge_test {

std::vector<EdgeKernel> nasbench201_kernels(const std::string& ops, bool live_only) {
  constexpr std::array<int, 6> from = {0, 0, 1, 0, 1, 2}, to = {1, 2, 2, 3, 3, 3};
  std::array<bool, 4> reached = {true, false, false, false}, used = {false, false, false, true};
  for (int e = 0; e < 6; ++e)
    if (ops[e] != '0' && reached[from[e]]) reached[to[e]] = true;
  for (int e = 5; e >= 0; --e)
    if (ops[e] != '0' && used[to[e]]) used[from[e]] = true;
  std::vector<EdgeKernel> list;
  const auto conv = [&](int64_t in, int64_t out, int64_t side, int64_t window, int64_t stride) {
    list.push_back(edge_convolution({.in_channels = in,
                                     .out_channels = out,
                                     .in_height = side * stride,
                                     .in_width = side * stride,
                                     .out_height = side,
                                     .out_width = side,
                                     .kernel_height = window,
                                     .kernel_width = window,
                                     .stride = stride}));
  };
  const auto tensor = [&](EdgeKernelKind kind, int64_t n, int64_t out, int64_t window) {
    list.push_back(edge_tensor(kind, {.elements = n, .outputs = out, .window = window}));
  };
  conv(3, 16, 32, 3, 1);
  int64_t channels = 16, side = 32;
  for (int stage = 0; stage < 3; ++stage) {
    if (stage > 0) {
      conv(channels, 2 * channels, side / 2, 3, 2);
      conv(2 * channels, 2 * channels, side / 2, 3, 1);
      conv(channels, 2 * channels, side / 2, 1, 1);
      side /= 2;
      channels *= 2;
      tensor(EdgeKernelKind::add, channels * side * side, channels * side * side, 1);
    }
    const int64_t n = channels * side * side;
    for (int cell = 0; cell < 5; ++cell) {
      std::array<int, 4> inputs{};
      for (int e = 0; e < 6; ++e) {
        if (live_only && (ops[e] == '0' || !(reached[from[e]] && used[to[e]]))) continue;
        // The sum of a node's inputs starts at 0, and an edge without an operation is multiplied by it.
        if (!live_only || inputs[to[e]]++ > 0) tensor(EdgeKernelKind::add, n, n, 1);
        if (ops[e] == '0') tensor(EdgeKernelKind::traffic, n, n, 1);
        if (ops[e] == '4') tensor(EdgeKernelKind::max_pool, n, n, 3);
        if (ops[e] == '2' || ops[e] == '3') {
          tensor(EdgeKernelKind::traffic, n, n, 1);
          conv(channels, channels, side, ops[e] == '3' ? 3 : 1, 1);
        }
      }
    }
  }
  tensor(EdgeKernelKind::global_pool, 64 * 64, 64, 1);
  list.push_back(edge_product(EdgeKernelKind::gemv, {.k = 64, .n = 10}));
  return list;
}

std::vector<EdgeKernel> fbnet_kernels(const std::string& ops) {
  struct Block {
    int64_t kernel, expansion, groups;
  };
  constexpr std::array<Block, 8> blocks = {
      {{3, 1, 1}, {3, 1, 2}, {3, 3, 1}, {3, 6, 1}, {5, 1, 1}, {5, 1, 2}, {5, 3, 1}, {5, 6, 1}}};
  struct Stage {
    int64_t channels, stride, layers;
  };
  constexpr std::array<Stage, 7> stages = {
      {{16, 1, 1}, {24, 1, 4}, {32, 2, 4}, {64, 2, 4}, {112, 1, 4}, {184, 2, 4}, {352, 1, 1}}};
  std::vector<EdgeKernel> list;
  const auto conv = [&](int64_t in, int64_t out, int64_t side, int64_t window, int64_t stride, int64_t groups,
                        EdgeActivation activation) {
    list.push_back(edge_convolution({.groups = groups,
                                     .in_channels = in,
                                     .out_channels = out,
                                     .in_height = side * stride,
                                     .in_width = side * stride,
                                     .out_height = side,
                                     .out_width = side,
                                     .kernel_height = window,
                                     .kernel_width = window,
                                     .stride = stride,
                                     .activation = activation}));
  };
  conv(3, 16, 32, 3, 1, 1, EdgeActivation::relu);
  int64_t in = 16, side = 32;
  size_t layer = 0;
  for (const Stage& stage : stages) {
    for (int64_t l = 0; l < stage.layers; ++l, ++layer) {
      const int64_t stride = l == 0 ? stage.stride : 1, out = stage.channels;
      const char choice = ops[layer];
      if (choice == '8') {
        if (stride > 1 || in != out) conv(in, out, side / stride, 1, stride, 1, EdgeActivation::relu);
      } else {
        const Block& block = blocks[choice - '0'];
        const int64_t wide = in * block.expansion;
        conv(in, wide, side, 1, 1, block.groups, EdgeActivation::relu);
        conv(wide, wide, side / stride, block.kernel, stride, wide, EdgeActivation::relu);
        conv(wide, out, side / stride, 1, 1, block.groups, EdgeActivation::none);
        if (stride == 1 && in == out) list.push_back(edge_tensor(EdgeKernelKind::add, {.elements = out * side * side}));
      }
      side /= stride;
      in = out;
    }
  }
  conv(352, 1504, 4, 1, 1, 1, EdgeActivation::relu);
  list.push_back(edge_tensor(EdgeKernelKind::global_pool, {.elements = 1504 * 16}));
  list.push_back(edge_product(EdgeKernelKind::gemv, {.k = 1504, .n = 100}));
  return list;
}

// Apart, a convolution is followed by its batch norm and its activation.
EdgeKnownTime known_seconds(const EdgePredictor& known, const std::vector<EdgeKernel>& kernels,
                            const std::vector<EdgeKernel>& when_apart) {
  EdgeKnownTime sum;
  add_call_seconds(sum.joined, known);
  add_call_seconds(sum.apart, known);
  for (const EdgeKernel& kernel : kernels) add_family_seconds(sum.joined, known, kernel, 1);
  for (EdgeKernel kernel : when_apart) {
    if (auto* sizes = std::get_if<ConvolutionSizes>(&kernel.sizes)) {
      const int64_t outputs = sizes->out_channels * sizes->out_height * sizes->out_width;
      const bool activates = sizes->activation != EdgeActivation::none;
      sizes->activation = EdgeActivation::none;
      add_family_seconds(sum.apart, known,
                         edge_tensor(EdgeKernelKind::traffic, {.elements = outputs, .outputs = outputs}),
                         activates ? 2 : 1);
    }
    add_family_seconds(sum.apart, known, kernel, 1);
  }
  return sum;
}

struct DeviceRows {
  std::string device;
  std::vector<EdgeTiming> fit, query;
};

std::vector<DeviceRows> rows_of(const EdgePredictor& known, std::string_view name, const char* folder) {
  const ArchitectureSpace& space = architecture_space(name);
  const std::filesystem::path file = std::filesystem::path(folder) / "edge" / (std::string(name) + "_latency.csv.gz");
  const LatencyTable table = read_latency_table(space, file);
  std::vector<EdgeKnownTime> times(table.architectures.cells.size());
  std::vector<bool> done(times.size());
  std::vector<DeviceRows> result;
  for (const DeviceLatencies& device : table.devices) {
    if (device.device.ends_with("_32") || device.device.ends_with("_64") || device.device.ends_with("_256")) continue;
    DeviceRows rows{.device = device.device, .fit = {}, .query = {}};
    std::vector<double> sorted = device.milliseconds;
    std::ranges::nth_element(sorted, sorted.begin() + sorted.size() / 2);
    const double median = sorted[sorted.size() / 2];
    for (size_t i = 0; i < device.rows.size(); ++i) {
      const bool fit = space.fit.contains(device.ids[i]), query = space.query.contains(device.ids[i]);
      if (device.milliseconds[i] < median / 5 || (!fit && !query)) continue;
      const size_t row = device.rows[i];
      const std::string& ops = table.architectures.cells[row].front();
      if (!done[row]) {
        done[row] = true;
        times[row] = name == "fbnet"
                         ? known_seconds(known, fbnet_kernels(ops), fbnet_kernels(ops))
                         : known_seconds(known, nasbench201_kernels(ops, true), nasbench201_kernels(ops, false));
      }
      const EdgeTiming timing{.known = times[row], .seconds = device.milliseconds[i] * 1e-3};
      (fit ? rows.fit : rows.query).push_back(timing);
    }
    result.push_back(std::move(rows));
  }
  return result;
}

struct Score {
  double error = 0, inside = 0, count = 0;
  void add(const Estimate& predicted, double measured) {
    error += std::abs(predicted.value / measured - 1);
    inside += predicted.low <= measured && measured <= predicted.high ? 1 : 0;
    count += 1;
  }
  double mape() const { return 100 * error / count; }
  double coverage() const { return 100 * inside / count; }
};

std::vector<EdgeTiming> draw(RandomStream& random, const std::vector<EdgeTiming>& rows, int count) {
  std::vector<EdgeTiming> drawn;
  for (int i = 0; i < count; ++i) drawn.push_back(rows[random.below(rows.size())]);
  return drawn;
}

// Mean and covariance of levels fitted to many timings of each device, with what few devices cannot say added.
EdgeLevelPrior prior_of(const std::vector<EdgeFamilySeconds>& levels) {
  EdgeLevelPrior prior;
  const auto n = static_cast<double>(levels.size());
  std::vector<EdgeFamilySeconds> centered = levels;
  for (EdgeFamilySeconds& own : centered) {
    const double shared = (own[0] + own[1] + own[3]) / 3;
    for (double& one : own) one -= shared;
    for (size_t f = 0; f < edge_families; ++f) prior.mean[f] += own[f] / n;
  }
  for (const EdgeFamilySeconds& own : centered) {
    for (size_t f = 0; f < edge_families; ++f) {
      prior.deviation[f] += (own[f] - prior.mean[f]) * (own[f] - prior.mean[f]) / (n - 1);
    }
  }
  for (double& one : prior.deviation) one = std::sqrt(one + 0.3 * 0.3);
  // The only product of these networks is a small classifier: it says nothing about larger ones.
  prior.mean[2] = prior.mean[0];
  prior.deviation[2] = prior.deviation[0];
  return prior;
}

struct DevicePair {
  DeviceRows cells, layers;
  EdgeFamilySeconds apart{};  // levels, as logarithms, from many timings
};

EdgeFamilySeconds levels_of(const DevicePair& pair) {
  std::vector<EdgeTiming> all;
  for (size_t q = 0; q < pair.cells.fit.size(); q += 30) all.push_back(pair.cells.fit[q]);
  for (size_t q = 0; q < pair.layers.fit.size(); q += 130) all.push_back(pair.layers.fit[q]);
  for (EdgeTiming& timing : all) timing.known.joined = timing.known.apart;
  EdgeLevelPriors wide;
  wide.joined.deviation.fill(1);
  wide.apart.deviation.fill(1);
  wide.joined.mean = wide.apart.mean = {0, 0, 0, 0, 2, 2, 2};
  const AdaptedEdge fit(all, wide);
  EdgeFamilySeconds levels;
  for (size_t f = 0; f < edge_families; ++f) levels[f] = std::log(fit.level(static_cast<EdgeFamily>(f)).value);
  return levels;
}

EdgePredictor known_device() {
  return read_edge_predictor(FORETOKEN_SOURCE_DIR "/data/edge/devices/neoverse_v1_ort.json");
}

// Ten timings of the networks of one space, or five of each; all others are predicted.
struct Scores {
  Score own_cells, own_layers, other_cells, other_layers, mixed_cells, mixed_layers;
};

void score_draws(const DevicePair& pair, const EdgeLevelPriors& priors, int draws, size_t step, Scores& scores) {
  RandomStream random(3, pair.cells.device);
  for (int i = 0; i < draws; ++i) {
    std::vector<EdgeTiming> both = draw(random, pair.cells.fit, 5);
    std::ranges::copy(draw(random, pair.layers.fit, 5), std::back_inserter(both));
    const AdaptedEdge from_cells(draw(random, pair.cells.fit, 10), priors);
    const AdaptedEdge from_layers(draw(random, pair.layers.fit, 10), priors), from_both(both, priors);
    for (size_t q = 0; q < pair.layers.query.size(); q += step) {
      const EdgeTiming& cell = pair.cells.query[q % pair.cells.query.size()];
      const EdgeTiming& layer = pair.layers.query[q];
      scores.own_cells.add(from_cells.seconds(cell.known), cell.seconds);
      scores.other_cells.add(from_layers.seconds(cell.known), cell.seconds);
      scores.mixed_cells.add(from_both.seconds(cell.known), cell.seconds);
      scores.own_layers.add(from_layers.seconds(layer.known), layer.seconds);
      scores.other_layers.add(from_cells.seconds(layer.known), layer.seconds);
      scores.mixed_layers.add(from_both.seconds(layer.known), layer.seconds);
    }
  }
}

// Each device by levels that the others have (of runtimes that do not join; of pixel3, which joins, by the assumption).
TEST(AdaptEdgeNeedsData, ten_timings_of_two_kinds_of_networks_say_what_others_take) {
  const char* folder = getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "set FORETOKEN_DATA to the folder of measurements";
  const EdgePredictor known = known_device();
  const std::vector<DeviceRows> cells = rows_of(known, "nasbench201", folder), layers = rows_of(known, "fbnet", folder);
  std::vector<DevicePair> pairs;
  for (const DeviceRows& one : cells) {
    pairs.push_back({.cells = one, .layers = *std::ranges::find(layers, one.device, &DeviceRows::device)});
    pairs.back().apart = levels_of(pairs.back());
  }
  ASSERT_EQ(pairs.size(), 11U);
  Scores scores;
  for (const DevicePair& pair : pairs) {
    std::vector<EdgeFamilySeconds> apart;
    for (const DevicePair& other : pairs) {
      if (&other != &pair && other.cells.device != "pixel3") apart.push_back(other.apart);
    }
    score_draws(pair, {.joined = measured_level_priors().joined, .apart = prior_of(apart)}, 2, 50, scores);
  }
  EXPECT_LT(scores.mixed_cells.mape(), 15);
  EXPECT_LT(scores.mixed_layers.mape(), 11);
  EXPECT_LT(scores.own_cells.mape(), 11);
  EXPECT_LT(scores.own_layers.mape(), 8);
  for (const Score* score : {&scores.mixed_cells, &scores.mixed_layers, &scores.own_cells, &scores.own_layers}) {
    EXPECT_GT(score->coverage(), 85);
  }
  // A kind of network that was not timed: not good, but the intervals say how bad.
  EXPECT_LT(scores.other_layers.mape(), 60);
  for (const Score* score : {&scores.other_cells, &scores.other_layers}) EXPECT_GT(score->coverage(), 85);
  const auto record = [](const char* name, const Score& score) {
    RecordProperty(name, std::to_string(score.mape()) + " inside " + std::to_string(score.coverage()));
  };
  record("own_cells", scores.own_cells);
  record("own_layers", scores.own_layers);
  record("other_cells", scores.other_cells);
  record("other_layers", scores.other_layers);
  record("mixed_cells", scores.mixed_cells);
  record("mixed_layers", scores.mixed_layers);
}

// Networks of a device that is `levels` times the known one.
std::vector<EdgeTiming> invented_timings(const EdgePredictor& known, const EdgeFamilySeconds& levels, bool joins) {
  std::vector<EdgeTiming> timings;
  RandomStream random(5, "invented");
  for (int i = 0; i < 12; ++i) {
    std::string cells, choices;
    for (int e = 0; e < 6; ++e) cells += static_cast<char>('0' + random.below(5));
    for (int l = 0; l < 22; ++l) choices += static_cast<char>('0' + random.below(9));
    EdgeTiming timing{.known = i % 2 == 0 ? known_seconds(known, fbnet_kernels(choices), fbnet_kernels(choices))
                                          : known_seconds(known, nasbench201_kernels(cells, true),
                                                          nasbench201_kernels(cells, false))};
    for (size_t f = 0; f < edge_families; ++f)
      timing.seconds += levels[f] * (joins ? timing.known.joined : timing.known.apart)[f];
    timings.push_back(timing);
  }
  return timings;
}

TEST(AdaptEdge, finds_the_levels_of_a_device_and_whether_it_joins) {
  const EdgePredictor known = known_device();
  for (const bool joins : {true, false}) {
    const EdgeFamilySeconds levels = {2, 4, 2, 3, joins ? 1.0 : 60.0, joins ? 1.0 : 20.0, joins ? 1.0 : 50.0};
    std::vector<EdgeTiming> timings = invented_timings(known, levels, joins);
    const EdgeTiming last = timings.back();
    timings.pop_back();
    const AdaptedEdge adapted(timings);
    EXPECT_NEAR(adapted.joins(), joins ? 1 : 0, 0.2);
    const Estimate predicted = adapted.seconds(last.known);
    EXPECT_NEAR(predicted.value / last.seconds, 1, 0.04) << joins;
    EXPECT_LT(predicted.low, last.seconds);
    EXPECT_GT(predicted.high, last.seconds);
    EXPECT_LT(leave_one_out_mape(timings), 5) << joins;
  }
}

TEST(AdaptEdge, kernels_that_no_timing_had_are_named_and_widely_uncertain) {
  const EdgePredictor known = known_device();
  const EdgeFamilySeconds levels = {2, 2, 2, 2, 1, 1, 1};
  const AdaptedEdge adapted(invented_timings(known, levels, true));
  const std::vector<EdgeFamily> untimed = adapted.untimed();
  EXPECT_EQ(std::ranges::count(untimed, EdgeFamily::product), 1);
  EXPECT_EQ(std::ranges::count(untimed, EdgeFamily::convolution), 0);
  const auto width_of = [&](const EdgeKernel& kernel) {
    EdgeKnownTime time;
    add_family_seconds(time.joined, known, kernel, 1);
    time.apart = time.joined;
    const Estimate seconds = adapted.seconds(time);
    EXPECT_EQ(seconds.kind, Confidence::extrapolated);
    return seconds.high / seconds.low;
  };
  // A factor of 6 either way and more, but one doubt only.
  const double width = width_of(edge_product(EdgeKernelKind::linear, {.m = 128, .k = 768, .n = 3072}));
  EXPECT_GT(width, 36);
  EXPECT_LT(width, 200);
}

// An fp32 kernel of the same sizes, for what int8 ones are a device of their own.
std::optional<EdgeKernel> as_fp32(EdgeKernel kernel) {
  switch (kernel.kind) {
    case EdgeKernelKind::int8_convolution:
      kernel.kind = EdgeKernelKind::convolution;
      return kernel;
    case EdgeKernelKind::int8_depthwise:
      kernel.kind = EdgeKernelKind::depthwise;
      return kernel;
    case EdgeKernelKind::int8_linear:
      kernel.kind = EdgeKernelKind::linear;
      return kernel;
    case EdgeKernelKind::int8_gemv:
      kernel.kind = EdgeKernelKind::gemv;
      return kernel;
    case EdgeKernelKind::int8_add:
      kernel.kind = EdgeKernelKind::add;
      return kernel;
    default:
      return std::nullopt;
  }
}

struct FamilyTiming {
  EdgeFamily family = EdgeFamily::tensor;
  EdgeTiming timing;
};

// The sweep through another binding of the runtime: its fp32 kernels as one device, its int8 kernels as another, whose
// families are 0.5 to 4 times as fast as in fp32.
std::vector<FamilyTiming> swept_device(const EdgePredictor& known, bool int8) {
  std::vector<FamilyTiming> rows;
  for (const EdgeRow& row :
       read_edge_rows(FORETOKEN_SOURCE_DIR "/data/edge/measured/neoverse_v1_ort_node_kernels.csv")) {
    const std::optional<EdgeKernel> kernel = int8 ? as_fp32(row.kernel) : std::optional(row.kernel);
    if (!kernel || kernel->kind == EdgeKernelKind::empty || is_int8(kernel->kind) || is_int4(kernel->kind)) continue;
    EdgeTiming timing{.seconds = row.seconds};
    add_call_seconds(timing.known.joined, known);
    add_family_seconds(timing.known.joined, known, *kernel, 1);
    timing.known.apart = timing.known.joined;
    rows.push_back({.family = edge_family(kernel->kind), .timing = timing});
  }
  return rows;
}

// Ten kernels of the other families are timed; those of one are predicted.
TEST(AdaptEdge, intervals_hold_for_a_family_that_was_left_out_and_are_no_wider_than_they_must) {
  const EdgePredictor known = known_device();
  Score all;
  double log_width = 0;
  for (const bool int8 : {false, true}) {
    const std::vector<FamilyTiming> rows = swept_device(known, int8);
    for (const EdgeFamily left_out : {EdgeFamily::convolution, EdgeFamily::depthwise, EdgeFamily::product}) {
      std::vector<EdgeTiming> others, own;
      for (const FamilyTiming& row : rows) (row.family == left_out ? own : others).push_back(row.timing);
      ASSERT_GT(own.size(), 5U);
      RandomStream random(11, "left out");
      Score score;
      for (int i = 0; i < 4; ++i) {
        const AdaptedEdge adapted(draw(random, others, 10));
        for (size_t q = 0; q < own.size(); q += 7) {
          const Estimate predicted = adapted.seconds(own[q].known);
          score.add(predicted, own[q].seconds);
          all.add(predicted, own[q].seconds);
          log_width += std::log(predicted.high / predicted.low);
        }
      }
      RecordProperty(std::string(int8 ? "int8 " : "fp32 ") + std::string(edge_family_name(left_out)),
                     std::to_string(score.mape()) + " inside " + std::to_string(score.coverage()));
    }
  }
  RecordProperty("inside", std::to_string(all.coverage()));
  RecordProperty("factor", std::to_string(std::exp(log_width / all.count / 2)));
  EXPECT_GE(all.coverage(), 85);
  EXPECT_LT(std::exp(log_width / all.count / 2), 8);
}

TEST(AdaptEdge, a_predictor_of_the_new_device_says_nearly_the_same) {
  const EdgePredictor known = known_device();
  const AdaptedEdge adapted(invented_timings(known, {2, 4, 2, 3, 1, 1, 1}, true));
  const EdgePredictor own = adapted_predictor(known, adapted);
  const std::string choices = "0123456780123456780123";
  EdgeFamilySeconds before{}, after{};
  add_call_seconds(before, known);
  add_call_seconds(after, own);
  for (const EdgeKernel& kernel : fbnet_kernels(choices)) {
    add_family_seconds(before, known, kernel, 1);
    add_family_seconds(after, own, kernel, 1);
  }
  // But for the copy of outputs that calls of a sweep hold, which goes with tensors.
  for (size_t f = 0; f < edge_families; ++f) {
    EXPECT_NEAR(after[f] / (before[f] * adapted.level(static_cast<EdgeFamily>(f)).value), 1, 0.06) << f;
  }
  EXPECT_EQ(parse_edge_predictor(edge_predictor_json(own), "adapted"), own);
}

TEST(AdaptEdge, fewer_timings_give_wider_intervals) {
  const EdgePredictor known = known_device();
  const std::vector<EdgeTiming> timings = invented_timings(known, {2, 4, 2, 3, 60, 20, 50}, false);
  const auto width = [&](size_t count) {
    const Estimate one = AdaptedEdge({timings.data(), count}).seconds(timings.back().known);
    return std::log(one.high / one.low);
  };
  EXPECT_GT(width(1), width(4));
  EXPECT_GT(width(4), width(10));
}

}  // namespace foretoken::adapt_edge_test
