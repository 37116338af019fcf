#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "accelerator/formats/designs.h"
#include "accelerator/row_stationary/chip.h"
#include "accelerator/systolic/chip.h"
#include "accelerator/workload/network_layer.h"
#include "app/cli/commands/list.h"
#include "app/cli/grammar/question.h"
#include "app/cli/output/today.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/diffusion/image_model.h"
#include "compose/stack.h"
#include "hardware/check.h"
#include "hardware/data_age.h"
#include "kernel/calibration.h"
#include "kernel/calibration_files.h"
#include "kernel/fewshot/latency_prior.h"
#include "model/vision.h"
#include "model/weights.h"
#include "report/parts/table.h"
#include "training/training_stack.h"

namespace foretoken {
namespace {

// Every model file reads and its weights can be counted.
std::vector<DataProblem> check_model_data(const std::filesystem::path& folder) {
  std::vector<DataProblem> problems;
  try {
    const ModelCatalogue catalogue(folder);
    for (const std::string& name : catalogue.names()) {
      try {
        count_parameters(catalogue.model(name));
      } catch (const InputError& error) {
        problems.push_back({.file = name, .message = error.sentence()});
      }
    }
  } catch (const InputError& error) {
    problems.push_back({.file = folder.string(), .message = error.sentence()});
  }
  return problems;
}

// Every JSON file of a folder that holds one kind of thing reads.
template <class Read>
std::vector<DataProblem> check_files(const std::filesystem::path& folder, const Read& read) {
  std::vector<DataProblem> problems;
  for (const std::string& stem : file_stems(folder)) {
    const std::filesystem::path file = folder / (stem + ".json");
    try {
      read(file);
    } catch (const InputError& error) {
      problems.push_back({.file = file.string(), .message = error.sentence()});
    }
  }
  return problems;
}

// Every design, list of layers and chip reads, and a design gets its energies. A library need not have any.
std::vector<DataProblem> check_accelerator_data(const std::filesystem::path& folder) {
  std::vector<DataProblem> problems;
  if (!std::filesystem::is_directory(folder)) return problems;
  const auto check = [&](const std::filesystem::path& file, const auto& read) {
    try {
      read(file);
    } catch (const InputError& error) {
      problems.push_back({.file = file.string(), .message = error.sentence()});
    }
  };
  const auto check_each = [&](const char* name, const auto& read) {
    for (const std::string& stem : file_stems(folder / name)) check(folder / name / (stem + ".json"), read);
  };
  check(folder, [&](const std::filesystem::path& path) {
    const AcceleratorCatalogue catalogue(path);
    check_each("designs", [&](const std::filesystem::path& file) { catalogue.design(file.string()); });
  });
  check_each("networks", [](const std::filesystem::path& file) {
    const Json document = read_json_file(file);
    read_network_layers(JsonView(document, file.string()));
  });
  check_each("chips", read_row_stationary_chip);
  check_each("systolic", read_systolic_chip);
  return problems;
}

// Every calibration passes its own check, whether or not it was packed. `dates` are filled with those of the fits.
std::vector<DataProblem> check_calibrations(const std::filesystem::path& folder, std::vector<DatedFact>& dates) {
  std::vector<DataProblem> problems;
  const auto check = [&](const std::filesystem::path& file, const auto& read) {
    try {
      dates.push_back({.what = file.lexically_relative(folder).string(), .date = read(file).fitted_on});
    } catch (const InputError& error) {
      problems.push_back({.file = file.string(), .message = error.sentence()});
    }
  };
  const CalibrationFiles files = calibration_files(folder);
  for (const std::filesystem::path& file : files.forms) check(file, read_form_calibration);
  for (const std::filesystem::path& file : files.devices) check(file, read_device_calibration);
  return problems;
}

// Stacks of engines and of training read. `dates` are filled with those of their fits.
std::vector<DataProblem> check_stacks(const std::filesystem::path& folder, std::vector<DatedFact>& dates) {
  const auto add_date = [&](const std::filesystem::path& file) {
    const Json document = read_json_file(file);
    dates.push_back({.what = file.lexically_relative(folder).string(),
                     .date = read_stack_origin(JsonView(document, file.string())).fitted_on});
  };
  const std::filesystem::path engines = folder / "stacks", training = folder / "training" / "stacks";
  std::vector<DataProblem> problems = check_files(engines, [&](const std::filesystem::path& file) {
    StackCatalogue(engines).stack(file.stem().string());
    add_date(file);
  });
  for (DataProblem& problem : check_files(training, [&](const std::filesystem::path& file) {
         TrainingStackCatalogue(training).stack(file.stem().string());
         add_date(file);
       })) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

// The first few, and how many there are beside.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

// What still reads but may no longer be so: software gets faster, and prices move.
std::vector<std::string> age_notes(const std::filesystem::path& folder, const std::vector<DatedFact>& fits,
                                   const std::string& today) {
  constexpr int most_months_of_prices = 6, most_months_of_fits = 12;
  std::vector<std::string> notes;
  const auto add = [&](const char* what, const std::vector<DatedFact>& facts, int most_months, const char* advice) {
    std::vector<std::string> old, undated;
    for (const DatedFact& fact : aged_facts(facts, today, most_months)) {
      (fact.date.empty() ? undated : old).push_back(fact.what);
    }
    if (!old.empty()) {
      notes.push_back(fmt::format("{} at least {} months old: {}. {}", what, most_months, some_of(old), advice));
    }
    if (!undated.empty()) notes.push_back(fmt::format("{} without a date: {}. {}", what, some_of(undated), advice));
  };
  const std::filesystem::path rents = folder / "prices" / "rent.json";
  if (std::filesystem::exists(rents)) {
    add("rents", rent_dates(rents), most_months_of_prices, "Give your own price with --gpu-price.");
  }
  add("fits", fits, most_months_of_fits, "Measure and fit again.");
  return notes;
}

// One kind of file that people write: how it is told from others, and its reader.
struct CheckedKind {
  const char* name;
  std::vector<std::string> keys;  // a file with one of these is of this kind
  std::function<void(const std::string& file, const Library& library)> read;
};

const std::vector<CheckedKind>& checked_kinds() {
  static const std::vector<CheckedKind> kinds = {
      {"question (for --spec)",
       {"command"},
       [](const auto& file, const auto&) { Question(read_json_file(file), file); }},
      {"model config",
       {"model_type", "architectures"},
       [](const auto& file, const auto& library) { count_parameters(library.models().model(file)); }},
      {"training stack", training_stack_keys(),
       [](const auto& file, const auto& library) { training_stacks_of(library).stack(file); }},
      {"stack",
       {"dispatch", "extends", "rules"},
       [](const auto& file, const auto& library) { stacks_of(library).stack(file); }},
      {"cluster",
       {"node", "node_count"},
       [](const auto& file, const auto& library) { library.hardware().cluster(file); }},
      {"node",
       {"device", "device_count"},
       [](const auto& file, const auto& library) { library.hardware().node(file); }},
      {"device",
       {"memory_gb", "dense_peak_tflops", "memory_bandwidth_gb_per_s", "architecture", "like"},
       [](const auto& file, const auto& library) { library.hardware().device(file); }}};
  return kinds;
}

const CheckedKind& kind_of_file(const std::string& file) {
  const Json document = read_json_file(file);
  std::vector<std::string> names;
  for (const CheckedKind& kind : checked_kinds()) {
    names.emplace_back(kind.name);
    const bool is_it = document.kind() == Json::Kind::object &&
                       std::any_of(kind.keys.begin(), kind.keys.end(),
                                   [&](const std::string& key) { return document.find(key) != nullptr; });
    if (is_it) return kind;
  }
  throw InputError({.source = file,
                    .value = "a file of no known kind",
                    .expected = fmt::format("the JSON file of one of these: {}", fmt::join(names, ", "))});
}

class CheckCommand : public Command {
 public:
  void declare(Options& options) override {
    file_options_ = &options.subcommand(
        "file",
        "One file of yours: a device, node, cluster, model config, stack, training stack, or question for --spec");
    file_options_->text("file", file_, "JSON file to check", true);
    file_options_->footer("Example:\n  foretoken check file my-device.json");
    Options& data =
        options.subcommand("data",
                           "Devices, nodes, clusters, models, vision encoders, image models, accelerators, priors, "
                           "calibrations and stacks: the shipped ones, or those of --dir");
    data.text("--dir", directory_,
              "Folder with hardware/ and models/, and optionally vision/, image_models/, accelerators/, edge/priors/, "
              "kernels/calibrations/, stacks/ and training/stacks/ [the shipped one]");
    data.text("--date", date_,
              "Day to judge the age of prices (6 months) and fits (12 months) by, for example 2026-11-17 [today]");
    data.footer("Example:\n  foretoken check data --dir my-library");
  }

  Answer run(const Library& library) const override {
    if (file_options_->was_chosen()) return checked_file(library);
    const std::filesystem::path folder = directory_.empty() ? library.directory() : std::filesystem::path(directory_);
    if (!std::filesystem::is_directory(folder)) {
      throw InputError(
          {.source = "--dir", .value = folder.string(), .expected = "a folder with hardware/ and models/"});
    }
    std::vector<DataProblem> problems = check_hardware_data(folder / "hardware");
    for (DataProblem& problem : check_model_data(folder / "models")) problems.push_back(std::move(problem));
    for (DataProblem& problem : check_files(folder / "vision", [](const auto& file) { read_vision_config(file); }))
      problems.push_back(std::move(problem));
    for (DataProblem& problem : check_files(folder / "image_models", [](const auto& file) { read_image_model(file); }))
      problems.push_back(std::move(problem));
    for (DataProblem& problem : check_accelerator_data(folder / "accelerators")) problems.push_back(std::move(problem));
    for (DataProblem& problem :
         check_files(folder / "edge" / "priors", [](const auto& file) { read_latency_prior(file); }))
      problems.push_back(std::move(problem));
    std::vector<DatedFact> fits;
    for (DataProblem& problem : check_calibrations(folder / "kernels" / "calibrations", fits))
      problems.push_back(std::move(problem));
    for (DataProblem& problem : check_stacks(folder, fits)) problems.push_back(std::move(problem));
    const std::string day = date_.empty() ? today() : date_;
    if (!months_between(day, day)) {
      throw InputError({.source = "--date", .value = day, .expected = "a day, for example 2026-11-17"});
    }
    const std::vector<std::string> notes = age_notes(folder, fits, day);

    constexpr int wrong_input = 2;
    std::string text;
    Json list = Json::array();
    for (const DataProblem& problem : problems) {
      text += problem.message + "\n";
      list.push(Json::object({{"file", problem.file}, {"problem", problem.message}}));
    }
    Json note_list = Json::array();
    for (const std::string& note : notes) {
      text += wrap_lines("note: " + note + "\n", page_width(), 2);
      note_list.push(note);
    }
    text += problems.empty() ? "no problems\n" : counted(problems.size(), "problem") + "\n";
    return {.text = std::move(text),
            .json = Json::object({{"problems", list}, {"notes", std::move(note_list)}}),
            .exit_status = problems.empty() ? 0 : wrong_input};
  }

 private:
  // InputError says what is wrong with it. A path without a slash may be the name of something that ships.
  Answer checked_file(const Library& library) const {
    const std::string path = std::filesystem::absolute(file_).string();
    const CheckedKind& kind = kind_of_file(path);
    kind.read(path, library);
    return {.text = fmt::format("{}: no problems; it is a {}\n", file_, kind.name),
            .json = Json::object({{"file", file_}, {"kind", kind.name}, {"problems", Json::array()}})};
  }

  Options* file_options_ = nullptr;
  std::string file_, directory_, date_;
};

}  // namespace

std::unique_ptr<Command> make_check() {
  return std::make_unique<CheckCommand>();
}

}  // namespace foretoken
