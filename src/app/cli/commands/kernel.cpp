#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/tier_flag.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/family.h"
#include "report/kernel_report.h"

namespace foretoken {
namespace {

// One family is one subcommand; its flags come from the family's own list of parameters.
class KernelCommand : public Command {
 public:
  void declare(Options& options) override {
    options.footer(
        "Examples:\n"
        "  foretoken kernel gemm --device h100_sxm --m 4096 --n 8192 --k 8192\n"
        "  foretoken kernel attention_decode --device l40s --batch 64 --heads 32 --kv-heads 8 --kv-len 4096\n"
        "  foretoken kernel gemm --device h100_sxm --csv shapes.csv");
    const std::span<const KernelFamily> families = kernel_families();
    texts_.resize(families.size());
    chosen_.resize(families.size());
    for (size_t f = 0; f < families.size(); ++f) {
      const KernelFamily& family = families[f];
      Options& flags = options.subcommand(family.name, family.summary);
      chosen_[f] = &flags;
      flags.text("--device", device_, "Built-in name (foretoken devices) or a device JSON file", true);
      flags.choice("--tier", tier_, tier_names(), tier_help);
      flags.text("--csv", csv_, "Predict every row of this CSV file (columns: the parameters below)");
      flags.text("--out", out_, "With --csv: write the rows with their predictions here");
      flags.heading("Parameters");
      texts_[f].resize(family.parameters.size());
      for (size_t p = 0; p < family.parameters.size(); ++p) {
        const KernelParameter& parameter = family.parameters[p];
        texts_[f][p] = parameter.fallback.value_or("");
        std::string help = parameter.help;
        if (!parameter.choices.empty()) help += fmt::format(": {}", fmt::join(parameter.choices, ", "));
        if (!parameter.fallback) help += fmt::format(" (needed; for example {})", parameter.example);
        flags.text(flag_name(parameter), texts_[f][p], help);
      }
      flags.footer("Example:\n  foretoken " + example(family));
    }
  }

  Answer run(const Library& library) const override {
    const KernelPredictor predictor = library.predictor(device_, tier_from_name(tier_).value());
    const std::span<const KernelFamily> families = kernel_families();
    for (size_t f = 0; f < families.size(); ++f) {
      if (!chosen_[f]->was_chosen()) continue;
      return csv_.empty() ? one(families[f], texts_[f], predictor) : many(families[f], predictor);
    }
    throw InternalError("the parser requires a family");
  }

 private:
  // A line that works: the family with typical values of what must be given.
  static std::string example(const KernelFamily& family) {
    std::string line = fmt::format("kernel {} --device h100_sxm", family.name);
    for (const KernelParameter& parameter : family.parameters) {
      if (!parameter.fallback) line += fmt::format(" {} {}", flag_name(parameter), parameter.example);
    }
    return line;
  }

  // The implementation asked for; "any" leaves the choice to the form.
  static std::string_view variant_of(GivenParameters given) {
    for (const auto& [name, value] : given) {
      if (name == "kernel" && value != "any") return value;
    }
    return {};
  }

  static Answer one(const KernelFamily& family, const std::vector<std::string>& texts,
                    const KernelPredictor& predictor) {
    std::vector<std::pair<std::string, std::string>> given;
    for (size_t p = 0; p < texts.size(); ++p) {
      if (!texts[p].empty()) given.emplace_back(family.parameters[p].name, texts[p]);
    }
    const KernelEstimate estimate = predictor.estimate(shape_from_flags(family, given), variant_of(given));
    return {.text = kernel_text(family, given, estimate, predictor.device()),
            .json = kernel_json(family, given, estimate, predictor.device())};
  }

  Answer many(const KernelFamily& family, const KernelPredictor& predictor) const {
    CsvReader csv{std::filesystem::path(csv_)};
    KernelRowReader reader(family, csv);
    const std::optional<size_t> variant = csv.find_column("kernel");
    std::string rows = fmt::format("{},predicted_us,low_us,high_us,bound,confidence\n", fmt::join(csv.columns(), ","));
    Json list = Json::array();
    while (csv.next()) {
      const KernelEstimate estimate =
          predictor.estimate(reader.read(csv), variant ? csv.cell(*variant) : std::string_view());
      for (size_t column = 0; column < csv.columns().size(); ++column) rows += csv_cell(csv.cell(column)) + ",";
      rows +=
          fmt::format("{},{},{},{},{}\n", number_text(estimate.seconds.value * 1e6),
                      number_text(estimate.seconds.low * 1e6), number_text(estimate.seconds.high * 1e6),
                      estimate.bound == Bound::compute ? "compute" : "memory", confidence_name(estimate.seconds.kind));
      list.push(to_json(estimate));
    }
    Json json = Json::object({{"family", family.name}, {"device", predictor.device().name}, {"rows", std::move(list)}});
    if (out_.empty()) return {.text = std::move(rows), .json = std::move(json)};
    write_file(out_, rows);
    return {.text = fmt::format("wrote {} predictions to {}\n", csv.row(), out_), .json = std::move(json)};
  }

  std::string device_, csv_, out_;
  std::string tier_ = "best";
  std::vector<std::vector<std::string>> texts_;  // by family and parameter
  std::vector<const Options*> chosen_;
};

}  // namespace

std::unique_ptr<Command> make_kernel() {
  return std::make_unique<KernelCommand>();
}

}  // namespace foretoken
