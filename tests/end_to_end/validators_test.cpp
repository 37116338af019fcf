// The values that validators predict are what users are told: for 50 rows of each kind, spread evenly over the table,
// the public functions give the same numbers to the last bit when they are asked the question that the row is. What
// validators of serving do besides (wider intervals, shortened runs of data sets: serving_specs.cpp) is done here too.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <foretoken/foretoken.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/file.h"
#include "validate/serving/serving_specs.h"
#include "validate/serving/validate_run.h"
#include "validate/serving/validate_serving.h"
#include "validate/steps/validate_steps.h"
#include "validate/training/validate_training.h"

namespace foretoken::validators_test {

namespace fs = std::filesystem;

constexpr size_t wanted_rows = 50;

// As many as there are where that is fewer.
template <class Row>
std::vector<Row> evenly_picked(const std::vector<Row>& rows) {
  if (rows.size() <= wanted_rows) return rows;
  std::vector<Row> picked;
  for (size_t i = 0; i < wanted_rows; ++i) picked.push_back(rows[i * rows.size() / wanted_rows]);
  return picked;
}

void expect_same(const Estimate& api, const Estimate& validator, const std::string& what) {
  EXPECT_EQ(api.value, validator.value) << what;
  EXPECT_EQ(api.low, validator.low) << what;
  EXPECT_EQ(api.high, validator.high) << what;
}
void expect_same(const Headline& api, const Headline& validator, const std::string& what) {
  EXPECT_EQ(api.value, validator.value) << what;
  EXPECT_EQ(api.low, validator.low) << what;
  EXPECT_EQ(api.high, validator.high) << what;
}

class Validators : public testing::Test {
 protected:
  void expect_steps(const fs::path& table, size_t least_rows) const {
    std::vector<std::pair<StepSpec, Estimate>> rows;
    validate_steps({.data = table}, library_,
                   [&](const ScoredStep& step) { rows.emplace_back(*step.spec, step.predicted->seconds); });
    const auto picked = evenly_picked(rows);
    ASSERT_GE(picked.size(), least_rows);
    for (const auto& [spec, validator] : picked) {
      expect_same(predict_step(library_, spec).step.seconds, validator, spec.model.model + " on " + spec.device);
    }
  }

  // Rows of these tiers that can be expressed.
  void expect_serving_rows(const fs::path& table, const ServingValidationRequest& request, size_t least_rows) const {
    std::optional<AcceptanceTable> acceptance;
    if (!request.acceptance.empty()) acceptance.emplace(request.acceptance);
    ServingSpecMaker maker(library_, std::move(acceptance), request.traces);
    const HardwareCatalogue hardware = library_.hardware();
    ServingCaseReader reader(table, hardware, read_public_facts(library_.directory()));
    std::vector<std::pair<std::string, ServingCase>> rows;
    while (reader.next()) {
      std::string line, why;
      for (size_t column = 0; column < reader.csv().columns().size(); ++column) {
        line += (column > 0 ? "," : "") + csv_cell(reader.csv().cell(column));
      }
      if (reader.text("tier") == "D") continue;  // take longest, and differ from others in length alone
      try {
        std::optional<ServingCase> point = reader.read(why);
        if (!point) continue;
        maker.open(*point);
        rows.emplace_back(line + "\n", std::move(*point));
      } catch (const InputError&) {
        continue;
      }
    }
    std::vector<std::pair<std::string, ServingCase>> picked = evenly_picked(rows);
    ASSERT_GE(picked.size(), least_rows);

    std::string text;
    for (const std::string& column : reader.csv().columns()) text += (text.empty() ? "" : ",") + csv_cell(column);
    text += "\n";
    for (const auto& [line, point] : picked) text += line;
    ServingValidationRequest asked = request;
    asked.data = fs::path(testing::TempDir()) / "validators_test_rows.csv";
    write_file(asked.data, text);
    std::map<size_t, std::vector<Headline>> validator;  // by row
    const Validation validation =
        validate_serving(asked, library_, serving_facts(library_),
                         [&](const ScoredServing& scored) { validator[scored.row].push_back(scored.predicted); });
    fs::remove(asked.data);

    size_t compared = 0;
    for (size_t i = 0; i < picked.size(); ++i) {
      const ServingCase& point = picked[i].second;
      const ServingSpecs specs = maker.specs(point);
      std::vector<Headline> api;
      try {
        EngineBuilder builder(serving_facts(library_));  // that no other row has used
        PointRun simulated;
        const bool is_several_runs = specs.shortened || specs.repeats_data_set;
        if (is_several_runs || specs.may_be_out_of_step) simulated = simulate_point(builder, specs);
        if (!is_several_runs) {
          simulated.run = simulate_serving(library_, specs.engine, specs.load, specs.deployment).run;
        }
        api = predicted_values(point, specs, simulated);
      } catch (const InputError&) {
        EXPECT_FALSE(validator.contains(i + 1)) << point.id << ": users are refused what validators answer";
        continue;
      }
      ASSERT_EQ(validator[i + 1].size(), api.size()) << point.id;
      for (size_t k = 0; k < api.size(); ++k) {
        expect_same(api[k], validator[i + 1][k], point.id + " " + std::string(point.measured[k].metric));
      }
      ++compared;
    }
    EXPECT_GE(compared, least_rows * 9 / 10);
    EXPECT_EQ(validation.skipped.size(), picked.size() - compared);
  }

  const Library library_{Library::find()};
};

TEST_F(Validators, steps_that_we_measured) {
  expect_steps(FORETOKEN_SOURCE_DIR "/data/measured/h200_sxm/steps.csv", wanted_rows);
}

TEST_F(Validators, operating_points_of_the_sample) {
  expect_serving_rows(FORETOKEN_SOURCE_DIR "/tests/data/serving/inferencex.csv", {}, 30);
}

class ValidatorsNeedsData : public Validators {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    data_ = folder;
  }

  void expect_run(const RunValidationRequest& request) const {
    struct Times : RunObserver {
      std::vector<RequestRecord> by_id;
      void request_ended(const RequestRecord& record) override { by_id[static_cast<size_t>(record.id)] = record; }
    };
    const VllmRun run = read_vllm_run(request.folder);
    RunSpecs specs = run_specs(run, request, library_);
    Times times;
    times.by_id.resize(run.requests.size());
    specs.deployment.observers = {&times};
    EngineBuilder builder(serving_facts(library_));
    simulate_serving(builder, specs.engine, specs.load, specs.deployment);
    std::vector<std::pair<size_t, double>> requests;  // end-to-end milliseconds by id
    validate_run(request, library_, serving_facts(library_), [&](const ScoredServing& scored) {
      if (scored.metric == "e2e_ms") requests.emplace_back(std::stoul(std::string(scored.id)), scored.predicted.value);
    });
    const auto picked = evenly_picked(requests);
    ASSERT_EQ(picked.size(), wanted_rows);
    for (const auto& [id, validator] : picked) {
      const RequestRecord& record = times.by_id[id];
      EXPECT_EQ(to_seconds(record.last_token - record.queued).value() * 1e3, validator) << "request " << id;
    }
  }

  fs::path data_;
};

TEST_F(ValidatorsNeedsData, published_steps) {
  expect_steps(data_ / "neusight/end_to_end.csv", wanted_rows);
}

TEST_F(ValidatorsNeedsData, published_operating_points) {
  expect_serving_rows(data_ / "serving/cases.csv.gz",
                      {.acceptance = data_ / "serving/spec_decode_acceptance.csv", .traces = data_ / "traces"},
                      wanted_rows);
}

TEST_F(ValidatorsNeedsData, runs_request_by_request) {
  for (const char* name : {"RTX4090_Llama-3.1-8B", "RTXPRO6000_Llama-3.1-8B"}) {
    const fs::path folder = data_ / "serving/vllm_runs" / name;
    expect_run({.folder = folder});
    expect_run({.folder = folder, .op_tables = folder / "op_profile"});
  }
}

TEST_F(ValidatorsNeedsData, published_training_runs) {
  struct Row {
    TrainingSpec spec;
    Estimate seconds;
  };
  std::vector<Row> rows;
  const HardwareCatalogue hardware = library_.hardware();
  TrainingCaseLibrary cases(training_stacks_of(library_).all(), run_clusters_of(library_), hardware,
                            [&](const Cluster& cluster) { return machine_of(library_, cluster); });
  validate_training({.data = data_ / "training/runs.csv.gz"}, cases, [&](const ScoredTraining& scored) {
    rows.push_back({scored.run->spec, scored.predicted->seconds});
  });
  const std::vector<Row> picked = evenly_picked(rows);
  ASSERT_EQ(picked.size(), wanted_rows);
  for (const Row& row : picked) {
    expect_same(estimate_training(library_, row.spec).estimate.iteration.seconds, row.seconds,
                row.spec.job.model.name + " on " + row.spec.cluster);
  }
}

}  // namespace foretoken::validators_test
