#include "report/chip/fusion_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr int fusion_file_version = 1;

std::string shown_chain(const std::vector<std::string>& chain) {
  constexpr size_t most_shown = 4;
  if (chain.size() <= most_shown) return fmt::format("{}", fmt::join(chain, " "));
  return fmt::format("{} {} ... {} ({})", chain[0], chain[1], chain.back(), chain.size());
}

}  // namespace

std::string fusion_text(const FusionSubject& subject, const FoundFusion& result) {
  Table table({{"chain", Table::Align::left},
               {"operators", Table::Align::left},
               {"", Table::Align::left},
               {"saved"},
               {"+-"},
               {"parts"},
               {"whole"}});
  for (const FusionFinding& finding : result.findings) {
    double parts = 0;
    for (const double seconds : finding.part_seconds) parts += seconds;
    table.add({finding.name, shown_chain(finding.chain), std::string(fusion_verdict_name(finding.verdict)),
               fmt::format("{:.0f}%", 100 * finding.saved_share), fmt::format("{:.0f}%", 100 * finding.noise_share),
               duration_text(parts), duration_text(finding.whole_seconds)});
  }
  std::string text = fmt::format("{}, {}\n{}", subject.runtime, subject.device, table.text());
  text += "saved: share of the time of all parts but the longest; 100% = those parts are free\n";
  if (!result.not_run.empty()) text += fmt::format("not run: {}\n", fmt::join(result.not_run, ", "));
  return text;
}

Json fusion_json(const FusionSubject& subject, const FoundFusion& result, const FindFusionOptions& options) {
  Json found = Json::array();
  for (const FusionFinding& finding : result.findings) {
    Json chain = Json::array(), parts = Json::array();
    for (const std::string& operation : finding.chain) chain.push(operation);
    for (const double seconds : finding.part_seconds) parts.push(seconds);
    const bool unsure = finding.verdict == FusionVerdict::unsure;
    found.push(
        Json::object({{"name", finding.name},
                      {"chain", std::move(chain)},
                      {"fused", unsure ? Json() : Json(finding.verdict == FusionVerdict::fused)},
                      {"saved_share", finding.saved_share},
                      {"noise_share", finding.noise_share},
                      {"seconds", Json::object({{"whole", finding.whole_seconds}, {"parts", std::move(parts)}})}}));
  }
  Json not_run = Json::array();
  for (const std::string& name : result.not_run) not_run.push(name);
  return Json::object({{"format", "foretoken-fusion"},
                       {"version", fusion_file_version},
                       {"runtime", subject.runtime},
                       {"device", subject.device},
                       {"least_share", options.least_share},
                       {"noise_share", options.noise_share},
                       {"found", std::move(found)},
                       {"not_run", std::move(not_run)}});
}

}  // namespace foretoken
