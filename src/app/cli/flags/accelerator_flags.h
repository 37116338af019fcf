// The flags that say which accelerator, and what runs on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/timeloop_files.h"
#include "accelerator/workload/layer_list.h"
#include "accelerator/workload/network_map.h"
#include "accelerator/workload/vector_work.h"
#include "app/cli/flags/layer_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"

namespace foretoken {

// An architecture with what its files say about energies, mappings and zeros.
struct AcceleratorQuestion {
  AcceleratorDesign design;
  std::vector<std::string> notes;         // what was taken from the library, or read in another way than written
  std::optional<Problem> problem;         // one operator, or
  std::vector<AcceleratorLayer> layers;   // a network
  std::vector<AcceleratorLayer> to_fuse;  // the same with what may be fused side by side
  std::vector<VectorWork> beside;         // what it does besides
  std::optional<Mapping> mapping;         // to be evaluated; else one is searched
  AcceleratorInputs timeloop;             // whatever came from YAML

  Constraints constraints_for(const Problem& own) const;
};

struct AcceleratorFlags {
  std::vector<std::string> arch, energy_tables, constraints, jinja;
  std::string problem, mapping;
  LayerFlags layers;
  std::string model, phase = "decode";
  int64_t batch = 1, input_len = 1024, context_len = 0;
  bool dram_rows = false;

  void declare(Options& options);
  // A flag of --model's step that would change nothing is a mistake about what it does: InputError.
  void refuse_unused(const Options& options) const;
  // InputError where no architecture, or no work or more than one kind of it, is given.
  AcceleratorQuestion question(const Library& library) const;

 private:
  struct SortedFiles {
    std::optional<std::string> own;  // a design that ships, or a file of our format
    std::vector<std::filesystem::path> yaml;
  };
  void check_given() const;
  SortedFiles sorted_files() const;
  void read_timeloop(const SortedFiles& files, const AcceleratorCatalogue& catalogue,
                     AcceleratorQuestion& question) const;
  void check_used(const AcceleratorInputs& read, const AcceleratorQuestion& question) const;
  void read_own_mapping(AcceleratorQuestion& question) const;
  void open_rows(AcceleratorLevel& memory) const;
  void read_work(const Library& library, AcceleratorQuestion& question) const;
};

}  // namespace foretoken
