// A row of published training runs as a question that can be asked: rows become specs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "hardware/catalogue.h"
#include "training/estimate/training_spec.h"
#include "training/runs/run_row.h"
#include "training/training_machine.h"
#include "training/training_stack.h"

namespace foretoken {

class Library;

// Which cluster the devices of a table are in: the first entry whose device it is and whose sources, if it has any,
// include the row's.
struct RunCluster {
  std::string gpu, cluster;
  std::vector<std::string> sources;
};
std::vector<RunCluster> parse_run_clusters(std::string_view text, const std::string& source);
std::vector<RunCluster> read_run_clusters(const std::filesystem::path& file);
std::vector<RunCluster> run_clusters_of(const Library& library);

struct TrainingCase {
  TrainingRow row;
  TrainingSpec spec;
  size_t stack = 0;  // in the list of the library
  const MachineModels* machine = nullptr;
};

// "26.06.01" of "release 26.06.01; ...": software releases in a row's notes; empty = none.
std::string release_of(const TrainingRow& row);

// Stacks and machines that rows name. Machines are made once.
class TrainingCaseLibrary {
 public:
  TrainingCaseLibrary(std::vector<TrainingStack> stacks, std::vector<RunCluster> clusters,
                      const HardwareCatalogue& hardware, MachineMaker make_machine)
      : stacks_(std::move(stacks)),
        clusters_(std::move(clusters)),
        hardware_(hardware),
        make_machine_(std::move(make_machine)) {}

  // Nothing and the reason where the row cannot be expressed. `stack` overrides what the row's source says.
  std::optional<TrainingCase> find(const TrainingRow& row, const std::string& stack, std::string& why);

  // What estimate_training() is asked with the case's machine: what it makes of the spec itself, but opened once.
  TrainingQuestion question_of(const TrainingCase& run) const;

  const std::vector<TrainingStack>& stacks() const { return stacks_; }

 private:
  std::optional<size_t> stack_of(const TrainingRow& row, const std::string& wanted) const;
  const RunCluster* cluster_of(const TrainingRow& row, std::string& why) const;
  // Where a source does not say what was computed again: as little as makes the run fit.
  void assume_recompute(TrainingCase& run) const;

  std::vector<TrainingStack> stacks_;
  std::vector<RunCluster> clusters_;
  const HardwareCatalogue& hardware_;
  MachineMaker make_machine_;
  // By cluster, nodes, and devices of a node.
  std::map<std::tuple<std::string, int64_t, int64_t>, std::unique_ptr<MachineModels>> machines_;
};

}  // namespace foretoken
