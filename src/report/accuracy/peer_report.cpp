#include "report/accuracy/peer_report.h"

#include <fmt/format.h>

#include "base/statistics.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

Json percent_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::optional<PeerErrors> peer_errors(const PeerRun& run) {
  std::vector<double> own, peer;
  for (const PeerFigure& figure : run.figures) {
    if (!figure.measured) continue;
    own.push_back(percent_error(figure.own, *figure.measured));
    peer.push_back(percent_error(figure.peer, *figure.measured));
  }
  if (own.empty()) return std::nullopt;
  return PeerErrors{.own = mean(own), .peer = mean(peer)};
}

std::optional<double> peer_difference(const PeerRun& run) {
  std::vector<double> differences;
  for (const PeerFigure& figure : run.figures) differences.push_back(percent_error(figure.own, figure.peer));
  return differences.empty() ? std::nullopt : std::optional(mean(differences));
}

std::string peers_text(const std::vector<PeerRun>& runs) {
  Table table({{.title = "peer", .align = Table::Align::left, .is_name = true},
               {.title = "same work", .align = Table::Align::left},
               {.title = "its time"},
               {.title = "ours"},
               {.title = "ratio"},
               {.title = "its error"},
               {.title = "ours"},
               {.title = "apart"}});
  std::string others;
  size_t ran = 0;
  for (const PeerRun& run : runs) {
    const std::string compared = run.compared_in.empty() ? "" : fmt::format(" (compared in {})", run.compared_in);
    if (run.found.empty()) {
      others += fmt::format("{}: not found{}\n", run.name, compared);
      continue;
    }
    if (!run.not_run.empty()) {
      others += wrap_lines(fmt::format("{}: found ({}), not run: {}{}\n", run.name, run.found, run.not_run, compared),
                           page_width(), 2);
      continue;
    }
    ++ran;
    const auto percent = [](double value) { return fmt::format("{:.1f}%", value); };
    const std::optional<PeerErrors> errors = peer_errors(run);
    table.add({run.name, run.work, duration_text(run.peer_seconds), duration_text(run.own_seconds),
               fmt::format("{:.3g}x", run.peer_seconds / run.own_seconds), errors ? percent(errors->peer) : "-",
               errors ? percent(errors->own) : "-", percent(peer_difference(run).value_or(0))});
  }
  if (ran == 0) return "No peer was run.\n" + others;
  return table.text() +
         "\nWall-clock times on this machine; ours leave out the start of the program. ratio: its time over "
         "ours.\n" +
         others;
}

Json peers_json(const std::vector<PeerRun>& runs) {
  Json list = Json::array();
  for (const PeerRun& run : runs) {
    Json json = Json::object({{"peer", run.name}, {"installed", !run.found.empty()}});
    if (!run.not_run.empty()) json.set("not_run", run.not_run);
    if (!run.compared_in.empty()) json.set("compared_in", run.compared_in);
    if (!run.figures.empty()) {
      const std::optional<PeerErrors> errors = peer_errors(run);
      Json figures = Json::array();
      for (const PeerFigure& figure : run.figures) {
        figures.push(Json::object({{"name", figure.name},
                                   {"foretoken", figure.own},
                                   {"peer", figure.peer},
                                   {"measured", percent_json(figure.measured)}}));
      }
      json.set("work", run.work);
      json.set("mape", percent_json(errors ? std::optional(errors->peer) : std::nullopt));
      json.set("foretoken_mape", percent_json(errors ? std::optional(errors->own) : std::nullopt));
      json.set("difference", percent_json(peer_difference(run)));
      json.set("figures", std::move(figures));
    }
    list.push(std::move(json));
  }
  return Json::object({{"peers", std::move(list)}});
}

}  // namespace foretoken
