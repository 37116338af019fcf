// Compares the memory of training with what others printed, and with runs that worked.
#pragma once

#include <filesystem>

#include "base/csv.h"
#include "base/validation.h"
#include "training/runs/training_case.h"

namespace foretoken {

// Whether a table is one of printed memory (columns quantity, value, unit).
bool is_printed_memory(const CsvReader& table);

// Activations of the first stage and states of a GPT without embedding and head, in GiB or in percent of those without
// sequence parallelism and recomputation (arXiv 2205.05198). Grouped by quantity.
Validation validate_printed_memory(CsvReader table);

// Whether a table is one of runs with the peak of allocated memory (column peak_allocated_gb).
bool is_measured_memory(const CsvReader& table);

// That peak, grouped by source.
Validation validate_measured_memory(const std::filesystem::path& file, TrainingCaseLibrary& library);

// All runs of a table worked: how much of its device's memory each is said to need, and which are called too large.
// Nothing is scored; the notes count verdicts by source.
struct MemoryOfRuns {
  Validation validation;
  size_t runs = 0, fit = 0, tight = 0, too_large = 0;
};
MemoryOfRuns validate_memory_of_runs(const std::filesystem::path& file, TrainingCaseLibrary& library);

}  // namespace foretoken
