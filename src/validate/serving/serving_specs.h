// A measured operating point as the question that simulate_serving() is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compose/model_spec.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "serving/serving_spec.h"
#include "serving/speculation/acceptance_table.h"
#include "validate/serving/serving_case.h"

namespace foretoken {

class Library;

struct ServingSpecs {
  EngineSpec engine;
  LoadSpec load;
  DeploymentSpec deployment;
  int64_t stands_for = 1;         // equal replicas of which one is asked about, with its part of the load
  bool shortened = false;         // fewer requests of an open load than were sent
  bool repeats_data_set = false;  // requests sent at once: the data set again and again, enough for ten minutes
  // Lengths of a closed loop are assumed to be all alike, so that clients that start together stay in step. Those of
  // the real run may have drifted apart.
  bool may_be_out_of_step = false;
};

struct PointRun {
  ServingRun run;
  std::optional<ServingMetrics> out_of_step;  // the same with clients that ask one after the other
};

// Makes such questions; models and devices that several rows name are opened once.
class ServingSpecMaker {
 public:
  // `acceptance`: of rows that draft and do not say how much was accepted; models that it does not have, or all where
  // there is none, take the method's usual one. `traces`: folder of the request files that rows replay; empty = such
  // rows are refused.
  ServingSpecMaker(const Library& library, std::optional<AcceptanceTable> acceptance, std::filesystem::path traces);

  // Opens what the row names, and chooses a layout where the row leaves it open. InputError for what is unknown or does
  // not go together.
  void open(ServingCase& point);
  // Of a row that was opened. May be called from several threads at a time.
  ServingSpecs specs(const ServingCase& point) const;

  // Rows with the same one share step times.
  std::string family_of(const ServingCase& point) const;
  bool has_experts(const std::string& model);

 private:
  struct OpenedModel {
    ModelSpec asked;  // in the formats that the row's words stand for
    Model model;      // as it runs on the device
  };
  static std::string key_of(const ServingCase& point);
  ModelSpec model_spec(const ServingCase& point) const;
  EngineSpec engine_of(const ServingCase& point, const CasePool& pool) const;
  std::vector<Request> replayed_requests(const ServingCase& point) const;

  const Library& library_;
  HardwareCatalogue hardware_;
  ModelCatalogue models_;
  std::optional<AcceptanceTable> acceptance_;
  std::filesystem::path traces_;
  std::map<std::string, Device> devices_;      // by their name in rows
  std::map<std::string, OpenedModel> opened_;  // by key_of()
  std::map<std::string, bool> experts_;        // by model
};

// The run that the specs ask for. Where it is shortened, throughput is that of the arrivals' time (arrival_window.h).
PointRun simulate_point(EngineBuilder& builder, const ServingSpecs& specs);

// Each measured value of the row, as the run has it. Its interval holds what is not known of the load, too.
std::vector<Headline> predicted_values(const ServingCase& point, const ServingSpecs& specs, const PointRun& simulated);

}  // namespace foretoken
