#include "kernel/edge/edge_predictor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "kernel/calibration_parts.h"
#include "kernel/edge/edge_test_sweep.h"
#include "kernel/test_support.h"

namespace foretoken::edge_predictor_file_test {

using namespace test_support;
using testing::HasSubstr;

EdgePredictor small_predictor() {
  EdgePredictor predictor{.device = "a small core",
                          .runtime = "a runtime",
                          .runtime_version = "1.2",
                          .threads = 2,
                          .source = "made up",
                          .fitted_on = "2026-11-15",
                          .core = {.cache_bytes = 262144, .tile_rows = 6, .tile_columns = 8, .depth_block = 512},
                          .calls = EdgeCallCosts{.node_ns = 1250, .copy_near_ns = 0.25, .copy_far_ns = 0.125},
                          .cross_validated_mape = 4.5,
                          .cross_validated_coverage = 91.25};
  predictor.kinds[EdgeKernelKind::empty] = {
      .prices_ns = {11000}, .least = {1}, .most = {1}, .rows = 3, .half_width = 0.1};
  predictor.kinds[EdgeKernelKind::add] = {.prices_ns = {16000, 0.75, 0.5},
                                          .least = {1, 300, 2},
                                          .most = {1, 90000, 500000},
                                          .rows = 22,
                                          .half_width = 0.0625,
                                          .cross_validated_mape = 2.5,
                                          .cross_validated_coverage = 95.5};
  return predictor;
}

// Written on 2026-11-15. Files of users look like this: it must load for ever.
constexpr const char* file_of_today = R"({
  "kind": "edge_predictor",
  "version": 1,
  "device": "a small core",
  "runtime": "a runtime",
  "runtime_version": "1.2",
  "threads": 2,
  "source": "made up",
  "fitted_on": "2026-11-15",
  "cross_validated_mape": 4.5,
  "cross_validated_coverage": 91.25,
  "core": {
    "cache_bytes": 262144,
    "tile_rows": 6,
    "tile_columns": 8,
    "depth_block": 512
  },
  "calls": {
    "node_ns": 1250,
    "copy_near_ns": 0.25,
    "copy_far_ns": 0.125
  },
  "kinds": {
    "add": {
      "law": "elements",
      "rows": 22,
      "half_width": 0.0625,
      "cross_validated_mape": 2.5,
      "cross_validated_coverage": 95.5,
      "prices": {
        "call": {
          "ns": 16000,
          "least": 1,
          "most": 1
        },
        "near": {
          "ns": 0.75,
          "least": 300,
          "most": 90000
        },
        "far": {
          "ns": 0.5,
          "least": 2,
          "most": 500000
        }
      }
    },
    "null": {
      "law": "call",
      "rows": 3,
      "half_width": 0.1,
      "cross_validated_mape": 0,
      "cross_validated_coverage": 0,
      "prices": {
        "call": {
          "ns": 11000,
          "least": 1,
          "most": 1
        }
      }
    }
  },
  "self_check": {
    "digest": "7e238bd585dd3542",
    "rows": [
      {
        "kind": "add",
        "params": "n=60000",
        "ms": 0.050003649159390075
      },
      {
        "kind": "null",
        "params": "",
        "ms": 0.011000000000000001
      }
    ]
  }
}
)";

std::string newer(const std::string& text) {
  Json file = parse_json(text, "original");
  file.set("version", calibration_version + 1);
  return file.dump();
}

// The file with one price changed, and with a digest that fits again if `repaired`.
std::string with_another_price(const std::string& text, bool repaired) {
  std::string changed = text;
  changed.replace(changed.find("0.75"), 4, "0.85");
  if (!repaired) return changed;
  const Json file = parse_json(changed, "changed");
  Json check = *file.find("self_check");
  check.set("digest", digest_of(file));
  Json result = file;
  result.set("self_check", std::move(check));
  return result.dump();
}

InputProblem problem_of_text(const std::string& text) {
  return problem_of([&] { parse_edge_predictor(text, "core.json"); });
}

TEST(EdgePredictorFile, measured_threads_read_back) {
  EdgePredictor written = small_predictor();
  written.thread_scaling = {
      {.threads = 2, .kinds = {{EdgeKernelKind::add, {.times = 1.5, .wait_ns = 4000, .half_width = 0.25}}}},
      {.threads = 4, .kinds = {{EdgeKernelKind::add, {.times = 1.75, .half_width = 0.5}}}}};
  const EdgePredictor read = parse_edge_predictor(edge_predictor_json(written), "file");
  EXPECT_EQ(read, written);
  ASSERT_NE(read.scaling_to(4), nullptr);
  EXPECT_EQ(read.scaling_to(3), nullptr);
}

TEST(EdgePredictorFile, a_file_written_today_loads_and_is_written_alike) {
  EXPECT_EQ(parse_edge_predictor(file_of_today, "core.json"), small_predictor());
  EXPECT_EQ(edge_predictor_json(small_predictor()), file_of_today);
}

TEST(EdgePredictorFile, a_file_of_a_newer_foretoken_is_refused_by_its_version) {
  const InputProblem problem = problem_of_text(newer(file_of_today));
  EXPECT_EQ(problem.path, "version");
  EXPECT_THAT(problem.expected, HasSubstr("newer foretoken"));
}

TEST(EdgePredictorFile, a_changed_file_is_refused) {
  EXPECT_THAT(problem_of_text(with_another_price(file_of_today, false)).expected, HasSubstr("damaged or was edited"));
}

TEST(EdgePredictorFile, a_file_whose_kernels_come_out_differently_is_refused) {
  const InputProblem problem = problem_of_text(with_another_price(file_of_today, true));
  EXPECT_EQ(problem.path, "self_check.rows[0].ms");
  EXPECT_THAT(problem.expected, HasSubstr("fit it anew"));
}

TEST(EdgePredictorFile, kinds_and_prices_must_be_those_of_the_laws) {
  const Json file = parse_json(file_of_today, "original");
  const auto with_kinds = [&](const char* name, const char* law) {
    Json changed = file, kind = *file.find("kinds")->find("add");
    kind.set("law", law);
    changed.set("kinds", Json::object({{name, std::move(kind)}}));
    Json check = *file.find("self_check");
    check.set("digest", digest_of(changed));
    changed.set("self_check", std::move(check));
    return problem_of_text(changed.dump());
  };
  EXPECT_THAT(with_kinds("fft", "elements").expected, HasSubstr("kind"));
  EXPECT_EQ(with_kinds("add", "magic").path, "kinds.add.law");
  EXPECT_THAT(with_kinds("transpose", "transpose").expected, HasSubstr("prices"));
}

TEST(EdgePredictorFile, every_shipped_predictor_loads) {
  const std::filesystem::path folder = FORETOKEN_SOURCE_DIR "/data/edge/devices";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const EdgePredictor predictor = read_edge_predictor(entry.path());
    for (const EdgeKernel& kernel : swept_kernels()) EXPECT_GT(predictor.kernel_seconds(kernel).value, 0);
    EXPECT_NE(predictor.device, "");
    ++files;
  }
  EXPECT_GT(files, 0u);
}

}  // namespace foretoken::edge_predictor_file_test
