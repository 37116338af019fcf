#include "validate/training/validate_memory.h"

#include <chrono>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "training/memory/training_memory.h"

namespace foretoken {
namespace {

// Matrices alone, or with their norms: the paper's formulas leave out biases, embedding and head, and count norms among
// the activations only.
Model printed_gpt(const CsvReader& table, int norms) {
  const auto size = [&](const char* column) { return table.integer(table.column(column), {1, 10'000'000}); };
  Model model{
      .name = std::string(table.cell(table.column("model"))), .hidden = size("hidden"), .vocabulary = size("vocab")};
  const int64_t heads = size("heads");
  if (model.hidden % heads != 0) table.fail(table.column("heads"), "heads that divide the hidden size");
  const Layer layer{.mixer = Attention{.heads = heads, .kv_heads = heads, .head_dim = model.hidden / heads},
                    .feed_forward = Mlp{.width = 4 * model.hidden, .gated = false},
                    .norms = norms};
  model.layers.assign(static_cast<size_t>(table.integer(table.column("layers"), {1, 10'000})), layer);
  return model;
}

struct PrintedCase {
  TrainingPlan plan;
  int64_t sequence_length = 1;
};

PrintedCase printed_case(const CsvReader& table) {
  const auto count = [&](const char* column) { return table.integer(table.column(column), {1, 8192}); };
  PrintedCase one{.plan = {.parallel = {.tensor = count("tp"), .pipeline = count("pp")},
                           .micro_batch = count("micro_batch"),
                           .virtual_stages = count("vpp")},
                  .sequence_length = table.integer(table.column("seq"), {1, 100'000'000})};
  TrainingPlan& plan = one.plan;
  if (plan.virtual_stages > 1) plan.schedule = "interleaved";
  plan.global_batch = 8 * plan.parallel.pipeline * plan.micro_batch;
  return one;
}

// What the row prints, in its unit.
double printed_quantity(const CsvReader& table) {
  const TrainingFormats formats{.saved = {.hidden_masks = true, .score_masks = true, .flash_attention = false}};
  PrintedCase one = printed_case(table);
  const auto first_stage = [&](int norms) {
    const Model model = printed_gpt(table, norms);
    check_plan(model, one.sequence_length, one.plan, 0);
    ModelParts parts = training_parts(model, one.sequence_length, one.plan, formats);
    parts.embedding = parts.head = {};
    return plan_memory(parts, one.plan, formats, {}).stages.front();
  };
  const std::string_view quantity = table.cell(table.column("quantity"));
  if (quantity == "params+grads+optimizer") return first_stage(0).states() / gibibytes(1);
  const Bytes baseline = first_stage(2).activations;
  one.plan.parallel.sequence = table.cell(table.column("sp")) == "1";
  const size_t recompute = table.column("recompute");
  const std::optional<Recompute> named = recompute_from_name(table.cell(recompute));
  if (!named) table.fail(recompute, fmt::format("one of {}", fmt::join(recompute_names(), ", ")));
  one.plan.recompute = *named;
  const Bytes activations = first_stage(2).activations;
  if (quantity == "activations stage 0") return activations / gibibytes(1);
  if (quantity.starts_with("activations relative to")) return 100 * (activations / baseline);
  table.fail(table.column("quantity"),
             "params+grads+optimizer, activations stage 0, or activations relative to sp=0 recompute=none");
}

}  // namespace

bool is_printed_memory(const CsvReader& table) {
  return table.find_column("quantity") && table.find_column("value") && table.find_column("unit");
}

Validation validate_printed_memory(CsvReader table) {
  Validation validation{.has_intervals = false};
  ValidationTally tally(0);
  while (table.next()) {
    const auto start = std::chrono::steady_clock::now();
    double predicted = 0;
    try {
      predicted = printed_quantity(table);
    } catch (const InputError& error) {
      validation.skipped.push_back({.file = table.source(), .row = table.row(), .why = error.sentence()});
      continue;
    }
    const double measured = table.number(table.column("value"), {1e-9, 1e12});
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    tally.add(table.cell(table.column("quantity")),
              {.measured = measured, .predicted = predicted, .low = predicted, .high = predicted}, spent.count());
  }
  tally.write(validation);
  return validation;
}

bool is_measured_memory(const CsvReader& table) {
  return table.find_column("peak_allocated_gb").has_value();
}

Validation validate_measured_memory(const std::filesystem::path& file, TrainingCaseLibrary& library) {
  TrainingRowReader rows(file);
  Validation validation{.has_intervals = false};
  ValidationTally tally(0);
  while (rows.next()) {
    const auto start = std::chrono::steady_clock::now();
    const TrainingRow row = rows.read();
    if (!row.peak_allocated_gb) continue;
    std::string why;
    const std::optional<TrainingCase> run = library.find(row, "", why);
    if (!run) {
      validation.skipped.push_back({.file = rows.csv().source(), .row = row.row, .why = std::move(why)});
      continue;
    }
    const double predicted = allocated_bytes(library.question_of(*run)).value();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    tally.add(row.source,
              {.measured = 1e9 * *row.peak_allocated_gb, .predicted = predicted, .low = predicted, .high = predicted},
              spent.count());
  }
  tally.write(validation);
  return validation;
}

MemoryOfRuns validate_memory_of_runs(const std::filesystem::path& file, TrainingCaseLibrary& library) {
  TrainingRowReader rows(file);
  MemoryOfRuns result;
  struct Verdicts {
    size_t runs = 0, too_large = 0;
  };
  std::map<std::string, Verdicts> by_source;
  std::string largest;
  while (rows.next()) {
    const TrainingRow row = rows.read();
    std::string why;
    const std::optional<TrainingCase> run = library.find(row, "", why);
    if (!run) {
      result.validation.skipped.push_back({.file = rows.csv().source(), .row = row.row, .why = std::move(why)});
      continue;
    }
    const TrainingQuestion asked = library.question_of(*run);
    const std::optional<Bytes> capacity = training_capacity(run->machine->device());
    if (!capacity) {
      result.validation.skipped.push_back(
          {.file = rows.csv().source(), .row = row.row, .why = "the device's memory is not known"});
      continue;
    }
    const ModelParts parts = training_parts(asked.job.model, asked.job.sequence_length, asked.plan, asked.formats);
    const Bytes need = plan_memory(parts, asked.plan, asked.formats, asked.overheads).most().total();
    const MemoryVerdict verdict = memory_verdict(need, *capacity, asked.overheads);
    Verdicts& source = by_source[row.source];
    ++source.runs;
    ++result.runs;
    if (verdict == MemoryVerdict::fits) ++result.fit;
    if (verdict == MemoryVerdict::tight || verdict == MemoryVerdict::uncertain) ++result.tight;
    if (verdict != MemoryVerdict::too_large) continue;
    ++source.too_large;
    ++result.too_large;
    largest += fmt::format("{}{} ({:.0f}% of {:.0f} GB)", largest.empty() ? "" : ", ", row.id, 100 * (need / *capacity),
                           capacity->value() / 1e9);
  }
  std::vector<std::string>& notes = result.validation.notes;
  notes.push_back(fmt::format(
      "{} runs that worked: {} are said to fit, {} to be tight, {} not to fit ({:.1f}%)", result.runs, result.fit,
      result.tight, result.too_large,
      result.runs == 0 ? 0 : 100 * static_cast<double>(result.too_large) / static_cast<double>(result.runs)));
  for (const auto& [source, verdicts] : by_source) {
    if (verdicts.too_large > 0)
      notes.push_back(fmt::format("{}: {} of {} are said not to fit", source, verdicts.too_large, verdicts.runs));
  }
  if (!largest.empty()) notes.push_back("said not to fit: " + largest);
  return result;
}

}  // namespace foretoken
