#include "serving/speculation/acceptance_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int64_t most_measured_drafts = 1000;

// "zai-org/GLM-5-FP8" -> "glm-5-fp8".
std::string short_name(std::string_view model) {
  const size_t slash = model.find_last_of('/');
  return lower_case(slash == std::string_view::npos ? model : model.substr(slash + 1));
}

bool same_model(std::string_view a, std::string_view b) {
  const std::string one = short_name(a), two = short_name(b);
  return one.find(two) != std::string::npos || two.find(one) != std::string::npos;
}

}  // namespace

AcceptanceTable::AcceptanceTable(const std::filesystem::path& file) : source_(file.string()) {
  CsvReader csv(file);
  const size_t model = csv.column("model"), method = csv.column("draft_method"), drafts = csv.column("draft_tokens"),
               length = csv.column("mean_acceptance_length");
  while (csv.next()) {
    Row row{.model = std::string(csv.cell(model)),
            .method = std::string(csv.cell(method)),
            .drafts = csv.integer(drafts, {.least = 1, .most = most_measured_drafts}),
            .length = 1};
    row.length = csv.number(length, {.least = 1, .most = static_cast<double>(row.drafts) + 1});
    rows_.push_back(std::move(row));
  }
}

AcceptanceTable::Lengths AcceptanceTable::lengths(std::string_view model, std::string_view method) const {
  std::map<int64_t, std::pair<double, double>> sums;  // of lengths, and how many
  for (const Row& row : rows_) {
    if (row.method != method || !same_model(row.model, model)) continue;
    sums[row.drafts].first += row.length;
    sums[row.drafts].second += 1;
  }
  Lengths means;
  for (const auto& [drafts, sum] : sums) means[drafts] = sum.first / sum.second;
  return means;
}

Acceptance AcceptanceTable::acceptance(const Lengths& lengths, int64_t drafts) const {
  if (!lengths.contains(drafts)) {
    throw InputError({.source = source_,
                      .path = "draft_tokens",
                      .value = std::to_string(drafts),
                      .expected = fmt::format("a measured number of drafts: {} to {}", lengths.begin()->first,
                                              lengths.rbegin()->first)});
  }
  return acceptance_from_lengths(lengths, drafts);
}

Acceptance AcceptanceTable::of_model(std::string_view model, std::string_view method, int64_t drafts) const {
  const Lengths found = lengths(model, method);
  if (found.empty()) refuse(model, method);
  return acceptance(found, drafts);
}

std::optional<Acceptance> AcceptanceTable::find(std::string_view model, std::string_view method, int64_t drafts) const {
  const Lengths found = lengths(model, method);
  return found.contains(drafts) ? std::optional(acceptance_from_lengths(found, drafts)) : std::nullopt;
}

void AcceptanceTable::refuse(std::string_view model, std::string_view method) const {
  std::set<std::string> with_method, methods;
  for (const Row& row : rows_) {
    methods.insert(row.method);
    if (row.method == method) with_method.insert(row.model);
  }
  const std::set<std::string>& known = with_method.empty() ? methods : with_method;
  const std::vector<std::string> names(known.begin(), known.end());
  throw InputError({.source = source_,
                    .path = with_method.empty() ? "draft_method" : "model",
                    .value = printable(with_method.empty() ? method : model),
                    .expected = fmt::format("one that was measured: {}", fmt::join(names, ", "))});
}

Acceptance acceptance_from_lengths(const std::map<int64_t, double>& lengths, int64_t drafts) {
  const double length = lengths.at(drafts);
  std::vector<double> reached;
  double before = 1, level = 1, sum = 0;
  for (int64_t i = 1; i <= drafts; ++i) {
    const auto found = lengths.find(i);
    if (found == lengths.end()) return Acceptance::of_rate_with_length(length, drafts);
    level = std::clamp(found->second - before, 0.0, level);
    before = found->second;
    reached.push_back(level);
    sum += level;
  }
  const double scale = sum > 0 ? (length - 1) / sum : 0;
  if (length > 1 && (sum == 0 || reached.front() * scale > 1)) return Acceptance::of_rate_with_length(length, drafts);
  for (double& chance : reached) chance *= scale;
  return {std::move(reached), "measured lengths"};
}

}  // namespace foretoken
