#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "compose/expert_kernels.h"
#include "compose/vendor_stack.h"
#include "kernel/explain.h"
#include "kernel/family.h"
#include "kernel/forms/eager_form.h"
#include "kernel/measured_rows.h"
#include "kernel/variants.h"
#include "report/kernel/kernel_plot.h"
#include "report/kernel/kernel_report.h"
#include "report/kernel/power_report.h"
#include "report/parts/device_notes.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// The implementations that rows of a file name. A name that nobody knows is priced as what engines usually run, with an
// interval as wide as implementations differ.
class RowVariants {
 public:
  RowVariants(const KernelFamily& family, const Library& library) : family_(family), library_(library) {}

  struct Priced {
    std::string variant;  // for the predictor
    std::string shown;    // for people
  };

  Priced priced(std::string_view name) {
    const std::string_view variant = kernel_variant(name);
    if (variant.empty()) return {.shown = "any"};
    const Priced as_named{.variant = std::string(variant), .shown = std::string(variant)};
    if (is_framework_kernel(variant)) return as_named;
    if (!known_) known_ = known_variants(family_, library_.calibrations());
    // A family that tells no implementations apart takes every name.
    if (known_->empty() || std::find(known_->begin(), known_->end(), variant) != known_->end()) return as_named;
    ++unknown_[std::string(variant)];
    return {.variant = std::string(variant), .shown = "any"};
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [name, rows] : unknown_) {
      notes.push_back(fmt::format(
          "{} is not a known implementation of {}: {} priced as the usual implementation, with a wider interval",
          printable(name), family_.name, rows == 1 ? "1 row is" : fmt::format("{} rows are", rows)));
    }
    return notes;
  }

 private:
  const KernelFamily& family_;
  const Library& library_;
  std::optional<std::vector<std::string>> known_;
  std::map<std::string, size_t> unknown_;
};

// One family is one subcommand; its flags come from the family's own list of parameters.
class KernelCommand : public Command {
 public:
  void declare(Options& options) override {
    options.footer(
        "Examples:\n  foretoken kernel gemm --device h100_sxm --m 4096 --n 8192 --k 8192\n  foretoken kernel "
        "attention_decode --device l40s --batch 64 --heads 32 --kv-heads 8 --kv-len 4096\n  foretoken kernel gemm "
        "--device h100_sxm --m 4k --n 8k --k 8k --data measurements/ --plot a.svg\n  foretoken kernel gemm --device "
        "h200_sxm --m 256 --n 28672 --k 4096 --sustained\n  foretoken kernel gemm --device h100_sxm --csv "
        "shapes.csv\nThe answer explains one kernel: what limits it, its tile and waves, where its time goes, what its "
        "interval is\nbased on, whether its sizes were measured, and the nearest measured rows. --csv predicts times "
        "only.");
    const std::span<const KernelFamily> families = kernel_families();
    texts_.resize(families.size());
    chosen_.resize(families.size());
    for (size_t f = 0; f < families.size(); ++f) {
      const KernelFamily& family = families[f];
      Options& flags = options.subcommand(family.name, family.summary);
      chosen_[f] = &flags;
      flags.text("--device", device_, "Built-in name (`foretoken devices` lists them) or a device JSON file", true);
      declare_kernel_source(flags, tier_);
      flags.text("--csv", csv_, "Predict every row of this CSV file, whose columns are the parameters below");
      flags.text("--out", out_, "With --csv: write the rows and their predictions to this CSV file");
      flags.text("--plot", plot_, "Plot a roofline with predicted and measured points in this SVG file");
      flags.text("--data", data_, "Folder to search for similar measured rows: <device>/<family>.csv[.gz]");
      flags.flag("--sustained", sustained_,
                 "Also show the kernel repeated without pause: power, clock, energy and the time at the power limit");
      flags.heading("Parameters");
      texts_[f].resize(family.parameters.size());
      for (size_t p = 0; p < family.parameters.size(); ++p) {
        const KernelParameter& parameter = family.parameters[p];
        texts_[f][p] = parameter.fallback.value_or("");
        std::string help = parameter.help;
        if (parameter.choices.size() > 1) help += fmt::format(": {}", fmt::join(parameter.choices, ", "));
        if (!parameter.fallback) help += fmt::format(" (required; for example {})", parameter.example);
        flags.text(flag_name(parameter.name), texts_[f][p], help);
      }
      flags.footer("Example:\n  foretoken " + example(family));
    }
  }

  Answer run(const Library& library) const override {
    const KernelPredictor predictor = library.predictor(device_, tier());
    const std::span<const KernelFamily> families = kernel_families();
    for (size_t f = 0; f < families.size(); ++f) {
      if (!chosen_[f]->was_chosen()) continue;
      if (csv_.empty()) {
        chosen_[f]->refuse_without("--csv", {"--out"});
        return one(families[f], texts_[f], predictor, library);
      }
      chosen_[f]->refuse({}, {"Parameters"}, "--csv (its columns give the parameters)");
      return many(families[f], predictor, library);
    }
    throw InternalError("the parser requires a family");
  }

 private:
  // A line that works: the family with typical values of what must be given.
  static std::string example(const KernelFamily& family) {
    std::string line = fmt::format("kernel {} --device h100_sxm", family.name);
    for (const KernelParameter& parameter : family.parameters) {
      if (!parameter.fallback) line += fmt::format(" {} {}", flag_name(parameter.name), parameter.example);
    }
    return line;
  }

  // The implementation asked for; empty = what engines usually run.
  static std::string variant_of(const KernelFamily& family, GivenParameters given, const Library& library) {
    for (const auto& [name, value] : given) {
      if (name == "kernel") return variant_from_flag(family, value, library.calibrations());
    }
    return {};
  }

  Tier tier() const { return tier_from_name(tier_).value(); }

  // InputError where --sustained asks for what the device's sheet does not allow.
  std::optional<PowerModel> power_of(const Device& device, const Library& library) const {
    std::optional<PowerModel> power = library.power_model(device);
    if (!sustained_ || power) return power;
    throw InputError({.source = "--sustained",
                      .path = device.name,
                      .value = "no known power limit",
                      .expected = "a device whose file gives power_limit_w"});
  }

  // The power of a device says nothing of the units in its memory.
  void check_power_is_known(const KernelPredictor& predictor, const KernelShape& shape) const {
    if (!sustained_ || !predictor.runs_in_memory(shape)) return;
    throw InputError({.source = "--sustained",
                      .path = predictor.device().name,
                      .value = "a kernel that runs in the memory",
                      .expected = "a kernel that the device runs: the power of units in its memory is not known"});
  }

  static KernelPower power_drawn(const PowerModel& power, const KernelShape& shape, std::string_view variant,
                                 const KernelEstimate& estimate, const Device& device) {
    return kernel_power(power, estimate.work, activity_of(shape, variant, device), estimate.seconds);
  }

  Answer one(const KernelFamily& family, const std::vector<std::string>& texts, const KernelPredictor& predictor,
             const Library& library) const {
    std::vector<std::pair<std::string, std::string>> given;
    for (size_t p = 0; p < texts.size(); ++p) {
      if (!texts[p].empty()) given.emplace_back(family.parameters[p].name, texts[p]);
    }
    const KernelShape shape = shape_from_texts(family, given);
    const std::string variant = variant_of(family, given, library);
    check_fits(shape, predictor.device());
    for (const auto& [name, value] : given) {
      if (name == "dtype") check_format(shape, value, predictor.device());
    }
    const KernelExplanation explanation = explain_kernel(predictor, shape, variant, library.calibrations());
    std::vector<std::string> notes = notes_on(predictor.device());
    if (std::string note = unmeasured_note(predictor, shape, variant, explanation.estimate); !note.empty()) {
      notes.push_back(std::move(note));
    }
    if (std::string note = untuned_note(predictor, shape, variant, explanation.estimate, stacks_of(library));
        !note.empty()) {
      notes.push_back(std::move(note));
    }
    const std::vector<MeasuredRow> rows = rows_like(shape, explanation, predictor.device(), library);
    const KernelReport report{.family = family,
                              .given = given,
                              .shape = shape,
                              .device = predictor.device(),
                              .explanation = explanation,
                              .in_memory = predictor.runs_in_memory(shape),
                              .nearest = rows};
    std::string text = kernel_text(report);
    for (const std::string& note : notes) text += wrap_lines("note: " + note, page_width(), 2);
    if (!plot_.empty()) {
      const PlottedKernel asked{.estimate = explanation.estimate, .label = call_text(family, given)};
      write_file(plot_, kernel_plot(family, predictor.device(), {&asked, 1}, rows, cache_bandwidth_of(explanation)));
      text += fmt::format("wrote {}\n", plot_);
    }
    Answer answer{.text = std::move(text), .json = kernel_json(report)};
    answer.json.set("notes", notes_json(notes));
    check_power_is_known(predictor, shape);
    const std::optional<PowerModel> power = power_of(predictor.device(), library);
    if (power && !report.in_memory) {
      const KernelPower drawn = power_drawn(*power, shape, variant, explanation.estimate, predictor.device());
      answer.text += power_text(drawn, predictor.device(), sustained_);
      answer.json.set("power", power_json(drawn, sustained_));
    }
    return answer;
  }

  static std::vector<std::string> notes_on(const Device& device) {
    return device.like ? std::vector<std::string>{like_sentence(device)} : std::vector<std::string>{};
  }

  static Json notes_json(const std::vector<std::string>& notes) {
    Json list = Json::array();
    for (const std::string& note : notes) list.push(note);
    return list;
  }

  // Where the implementation asked for was not measured on a device that was swept with others: what was priced.
  static std::string unmeasured_note(const KernelPredictor& predictor, const KernelShape& shape,
                                     std::string_view variant, const KernelEstimate& estimate) {
    if (variant.empty() || (estimate.tier != Tier::cross && estimate.tier != Tier::roofline)) return {};
    const KernelEstimate usual = predictor.estimate(shape);
    if (usual.tier != Tier::measured && usual.tier != Tier::sibling) return {};
    return fmt::format(
        "{} was not measured on {}, so this time comes from {}. The sweep of {} has other implementations of this "
        "kernel. Without --kernel, the predicted time is {}.",
        variant, predictor.device().name,
        estimate.tier == Tier::cross ? "measurements of other devices" : "the roofline", predictor.device().name,
        duration_text(usual.seconds.value));
  }

  // Where engines run a faster kernel than the one that was measured in this format.
  static std::string untuned_note(const KernelPredictor& predictor, const KernelShape& shape, std::string_view variant,
                                  const KernelEstimate& estimate, const StackCatalogue& stacks) {
    const auto* const experts = std::get_if<MoeShape>(&shape);
    if (experts == nullptr || !variant.empty()) return {};
    const Stack engine =
        stack_on(predictor.device(), "vllm", [&](const std::string& name) { return stacks.stack(name); });
    if (!engine.tuned_experts) return {};
    const std::optional<TunedExperts> tuned = tuned_experts(*experts, estimate.seconds.value, predictor);
    constexpr double much_faster = 0.8;
    if (!tuned || tuned->seconds.value > much_faster * estimate.seconds.value) return {};
    return fmt::format(
        "The kernel for experts with one fp8 scale per tensor was measured without tuning. Serving engines tune "
        "theirs: "
        "in `step` and `serve`, the stacks of vLLM, SGLang and TensorRT-LLM take {} for these sizes, as --dtype "
        "fp8_block{} does.",
        duration_text(tuned->seconds.value), tuned->variant.empty() ? "" : fmt::format(" --kernel {}", tuned->variant));
  }

  // A narrow cache is read on any device; a narrow multiply needs the arithmetic.
  static void check_format(const KernelShape& shape, std::string_view dtype, const Device& device) {
    const std::optional<Scheme> scheme = scheme_from_name(dtype);
    const std::optional<DType> type = scheme ? std::optional(facts(*scheme).math) : dtype_from_name(dtype);
    if (!type || *type != count_work(shape).math) return;
    if (scheme) {
      check_multiplies_in("dtype", *scheme, device, dtype);
    } else {
      check_multiplies_in("dtype", *type, device, dtype);
    }
  }

  static void check_format_of_row(const KernelShape& shape, const CsvReader& csv, size_t column, const Device& device) {
    try {
      check_format(shape, csv.cell(column), device);
    } catch (const InputError& error) {
      csv.fail(column, error.problem().expected, error.problem().suggestion);
    }
  }

  // Sizes that no device could hold are a slip of the keyboard; what merely does not fit is noted in the report.
  static void check_fits(const KernelShape& shape, const Device& device) {
    constexpr double absurd = 1000;
    const Bytes needed = count_work(shape).bytes();
    if (!device.memory || needed <= device.memory->value * absurd) return;
    throw InputError({.source = "sizes",
                      .value = bytes_text(needed.value()) + " of data",
                      .expected = fmt::format("an amount that {} can hold in its {}, within a factor of {:.0f}",
                                              device.name, bytes_text(device.memory->value.value()), absurd)});
  }

  // Measured rows of this device, or of the one whose sweep answered; the user's first, then those that ship.
  std::vector<MeasuredRow> rows_like(const KernelShape& shape, const KernelExplanation& explanation,
                                     const Device& device, const Library& library) const {
    std::vector<std::filesystem::path> folders;
    if (!data_.empty()) folders.emplace_back(data_);
    const std::filesystem::path shipped = library.directory() / "measured";
    if (std::error_code error; std::filesystem::is_directory(shipped, error)) folders.push_back(shipped);
    std::vector<std::string> devices = {device.name};
    if (!explanation.swept_device.empty() && explanation.swept_device != device.name)
      devices.push_back(explanation.swept_device);
    for (const std::string& name : devices) {
      for (const std::filesystem::path& folder : folders) {
        std::vector<MeasuredRow> rows =
            measured_rows_like(shape, name, folder, library.hardware(), [&](const Device& measured, Caches caches) {
              return library.benchmark_predictor(measured, tier(), library.calibrations(), caches);
            });
        if (!rows.empty()) return rows;
      }
    }
    return {};
  }

  Answer many(const KernelFamily& family, const KernelPredictor& predictor, const Library& library) const {
    CsvReader csv{std::filesystem::path(csv_)};
    KernelRowReader reader(family, csv);
    const std::optional<size_t> variant = csv.find_column("kernel"), dtype = csv.find_column("dtype");
    std::string rows = fmt::format("{},predicted_us,low_us,high_us,bound,confidence,rests_on,priced_as{}\n",
                                   fmt::join(csv.columns(), ","), sustained_ ? ",sustained_us,power_w,energy_j" : "");
    RowVariants names(family, library);
    const std::optional<PowerModel> power = power_of(predictor.device(), library);
    Json list = Json::array();
    std::vector<PlottedKernel> plotted;
    std::optional<KernelShape> first;
    while (csv.next()) {
      const KernelShape shape = reader.read(csv);
      if (dtype) check_format_of_row(shape, csv, *dtype, predictor.device());
      const RowVariants::Priced priced =
          variant ? names.priced(csv.cell(*variant)) : RowVariants::Priced{.shown = "any"};
      const KernelEstimate estimate = predictor.estimate(shape, priced.variant);
      if (!first) first = shape;
      if (!plot_.empty()) plotted.push_back({.estimate = estimate, .label = sizes_text(shape)});
      for (size_t column = 0; column < csv.columns().size(); ++column) rows += csv_cell(csv.cell(column)) + ",";
      rows += fmt::format("{},{},{},{},{},{},{}", number_text(estimate.seconds.value * 1e6),
                          number_text(estimate.seconds.low * 1e6), number_text(estimate.seconds.high * 1e6),
                          bound_name(estimate.bound), confidence_name(estimate.seconds.kind), tier_name(estimate.tier),
                          csv_cell(priced.shown));
      Json entry = to_json(estimate);
      entry.set("priced_as", priced.shown);
      if (sustained_) {
        check_power_is_known(predictor, shape);
        const KernelPower drawn = power_drawn(*power, shape, priced.variant, estimate, predictor.device());
        rows += fmt::format(",{},{},{}", number_text(drawn.sustained_seconds.value * 1e6),
                            number_text(drawn.sustained.watts.value), number_text(drawn.sustained.joules.value));
        entry.set("power", power_json(drawn, true));
      }
      rows += "\n";
      list.push(std::move(entry));
    }
    std::vector<std::string> notes = notes_on(predictor.device());
    for (std::string& note : names.notes()) notes.push_back(std::move(note));
    Json json = Json::object({{"family", family.name},
                              {"device", predictor.device().name},
                              {"rows", std::move(list)},
                              {"notes", notes_json(notes)}});
    if (!plot_.empty() && first) {
      const KernelExplanation explanation = explain_kernel(predictor, *first, {}, library.calibrations());
      const std::vector<MeasuredRow> like = rows_like(*first, explanation, predictor.device(), library);
      write_file(plot_, kernel_plot(family, predictor.device(), plotted, like, cache_bandwidth_of(explanation)));
    }
    if (out_.empty()) return {.text = std::move(rows), .json = std::move(json)};
    write_file(out_, rows);
    std::string text = fmt::format("wrote {} predictions to {}\n", csv.row(), out_);
    for (const std::string& note : notes) text += wrap_lines("note: " + note, page_width(), 2);
    return {.text = std::move(text), .json = std::move(json)};
  }

  std::string device_, csv_, out_, data_, plot_;
  std::string tier_ = "best";
  bool sustained_ = false;
  std::vector<std::vector<std::string>> texts_;  // by family and parameter
  std::vector<const Options*> chosen_;
};

}  // namespace

std::unique_ptr<Command> make_kernel() {
  return std::make_unique<KernelCommand>();
}

}  // namespace foretoken
