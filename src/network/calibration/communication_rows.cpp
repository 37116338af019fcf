#include "network/calibration/communication_rows.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/number_format.h"
#include "base/text.h"
#include "network/calibration/expert_kernels.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> counts{.least = 1, .most = 1'000'000'000};
constexpr Range<double> times_us{.least = 1e-3, .most = 1e12};

// The current row of a table, and where its calls go.
class TableRow {
 public:
  TableRow(const CsvReader& csv, const SystemLibrary& systems, CommunicationRows& result)
      : csv_(csv), systems_(systems), result_(result) {}

  std::string text(std::string_view column) const { return std::string(csv_.cell(csv_.column(column))); }
  std::string text_or(std::string_view column, std::string fallback) const {
    const auto found = csv_.find_column(column);
    return found ? std::string(csv_.cell(*found)) : std::move(fallback);
  }
  int64_t count(std::string_view column) const { return csv_.integer(csv_.column(column), counts); }
  double number(std::string_view column) const { return csv_.number(csv_.column(column), {.least = 0, .most = 1e15}); }
  double seconds(std::string_view column) const { return 1e-6 * csv_.number(csv_.column(column), times_us); }

  // Whether the catalogue has the device; if not, the row is skipped with the reason.
  bool knows(const std::string& device) {
    try {
      systems_.traits(device);
      return true;
    } catch (const InputError& error) {
      skip(fmt::format("{}: {}", printable(device), error.problem().expected));
      return false;
    }
  }
  const SystemTraits& traits(const std::string& device) const { return systems_.traits(device); }

  void add(const std::string& device, const std::string& collective, CommunicationCall call, double seconds) {
    result_.rows.push_back({.file = csv_.source(),
                            .row = csv_.row(),
                            .system = text("system"),
                            .group = fmt::format("{}/{}", text("system"), collective),
                            .repetition = text_or("rep", "0"),
                            .call = std::move(call),
                            .device = systems_.traits(device).name,
                            .seconds = seconds});
  }
  void for_checks_only() { result_.rows.back().is_check_only = true; }
  void skip(std::string why) { result_.skipped.push_back({csv_.source(), csv_.row(), std::move(why)}); }

 private:
  const CsvReader& csv_;
  const SystemLibrary& systems_;
  CommunicationRows& result_;
};

void read_nccl(TableRow& row) {
  if (!row.knows(row.text("system"))) return;
  const std::string collective = row.text("collective"), library = row.text("ccl");
  if (library != "nccl" && library != "oneccl") return row.skip(fmt::format("no such library: {}", printable(library)));
  row.add(row.text("system"), collective,
          {.law = library,
           .operation = collective,
           .variant = fmt::format("{} {}", row.text("version"), row.text("dtype")),
           .ranks = row.count("gpus"),
           .bytes = row.number("bytes")},
          row.seconds("latency_us"));
}

// The kernel that ran, not the framework that was timed: SGLang uses TensorRT-LLM's on some systems.
void read_custom_all_reduce(TableRow& row) {
  if (!row.knows(row.text("system"))) return;
  const std::string kernel = row.text("kernel");
  std::string operation;
  for (const std::string_view name : {"vllm", "sglang", "trtllm"}) {
    if (starts_with_ignoring_case(kernel, name)) operation = name;
  }
  if (operation.empty()) return row.skip(fmt::format("no such all-reduce kernel: {}", printable(kernel)));
  operation += kernel.ends_with("_eager") ? "_eager" : "_graph";
  row.add(row.text("system"), operation,
          {.law = "custom_all_reduce",
           .operation = operation,
           .variant = fmt::format("{} {} {}", row.text("framework"), row.text("version"), row.text("dtype")),
           .ranks = row.count("gpus"),
           .bytes = row.number("bytes")},
          row.seconds("latency_us"));
}

CommunicationCall deepep_call(const TableRow& row, const char* law, const char* operation, double bytes_per_value) {
  const int64_t nodes = row.count("node_num");
  return {.law = law,
          .operation = operation,
          .variant = row.text("version"),
          .ranks = nodes * row.traits(row.text("system")).devices_per_host,
          .nodes = nodes,
          .expert = {.tokens = row.count("num_token"),
                     .hidden = row.count("hidden_size"),
                     .top_k = row.count("num_topk"),
                     .experts = row.count("num_experts"),
                     .bytes_per_value = bytes_per_value}};
}

void read_deepep_low_latency(TableRow& row) {
  if (!row.knows(row.text("system"))) return;
  constexpr const char* law = "deepep_low_latency";
  row.add(row.text("system"), "deepep_ll_dispatch", deepep_call(row, law, "dispatch", deepep_fp8_bytes),
          row.seconds("dispatch_avg_t_us"));
  row.add(row.text("system"), "deepep_ll_combine", deepep_call(row, law, "combine", bf16_bytes),
          row.seconds("combine_avg_t_us"));
}

// The time of a call is that of its kernels: the one that tells the receivers how much will come, and the transfer.
void read_deepep_normal(TableRow& row) {
  if (!row.knows(row.text("system"))) return;
  for (const char* operation : {"dispatch", "combine"}) {
    CommunicationCall call = deepep_call(row, "deepep_normal", operation,
                                         operation == std::string_view("dispatch") ? deepep_fp8_bytes : bf16_bytes);
    call.expert.processors = row.count(fmt::format("{}_sms", operation));
    row.add(row.text("system"), fmt::format("deepep_normal_{}", operation), std::move(call),
            row.seconds(fmt::format("{}_transmit_us", operation)) +
                1e-6 * row.number(fmt::format("{}_notify_us", operation)));
  }
}

void read_expert_all_to_all(TableRow& row) {
  if (!row.knows(row.text("system"))) return;
  const std::string phase = row.text("op_name"), type = row.text("moe_dtype");
  // Only the dispatch sends in the experts' number format.
  double bytes_per_value = bf16_bytes;
  if (phase.ends_with("prepare")) bytes_per_value = 0;
  if (phase.ends_with("dispatch") && type == "fp8") bytes_per_value = 1;
  if (phase.ends_with("dispatch") && type == "nvfp4") bytes_per_value = nvfp4_bytes;
  const std::string operation =
      fmt::format("{} {}{}", row.text("kernel_source"), phase, phase.ends_with("dispatch") ? " " + type : "");
  row.add(row.text("system"), phase,
          {.law = "expert_all_to_all",
           .operation = operation,
           .variant = fmt::format("{} {}", row.text("version"), type),
           .ranks = row.count("moe_ep_size"),
           .expert = {.tokens = row.count("num_tokens"),
                      .hidden = row.count("hidden_size"),
                      .top_k = row.count("topk"),
                      .experts = row.count("num_experts"),
                      .bytes_per_value = bytes_per_value}},
          row.seconds("latency_us"));
}

// Three steps under a profiler: kernel time, without the launch.
void read_vidur(TableRow& row) {
  const std::string system = row.text("system"), collective = row.text("collective");
  if (!system.ends_with("_dgx"))
    return row.skip("NVLink between pairs only: the device's sheet does not describe that");
  if (row.count("gpus") != row.count("gpus_per_node_used"))
    return row.skip("several nodes, whose network the table does not describe");
  if (collective != "all_reduce") return row.skip("no measured law of a plain send");
  const std::string device = system.substr(0, system.size() - 4) + "_sxm";
  if (!row.knows(device)) return;
  row.add(device, collective,
          {.law = "nccl",
           .operation = collective,
           .variant = "2.19 half",
           .ranks = row.count("gpus"),
           .bytes = row.number("bytes")},
          row.seconds("median_us"));
  row.for_checks_only();
}

struct TableFormat {
  std::vector<std::string_view> columns;
  void (*read)(TableRow& row);
};

const TableFormat* table_format(const CsvReader& csv) {
  static const TableFormat formats[] = {
      {{"system", "ccl", "version", "collective", "dtype", "gpus", "bytes", "latency_us"}, read_nccl},
      {{"system", "framework", "version", "kernel", "dtype", "gpus", "bytes", "latency_us"}, read_custom_all_reduce},
      {{"system", "version", "node_num", "num_token", "dispatch_avg_t_us", "combine_avg_t_us"},
       read_deepep_low_latency},
      {{"system", "version", "node_num", "num_token", "dispatch_sms", "dispatch_transmit_us"}, read_deepep_normal},
      {{"system", "op_name", "kernel_source", "moe_dtype", "moe_ep_size", "latency_us"}, read_expert_all_to_all},
      {{"system", "collective", "gpus", "gpus_per_node_used", "bytes", "median_us"}, read_vidur},
  };
  for (const TableFormat& format : formats) {
    if (std::all_of(format.columns.begin(), format.columns.end(),
                    [&](std::string_view column) { return csv.find_column(column).has_value(); })) {
      return &format;
    }
  }
  return nullptr;
}

bool is_table(const std::filesystem::path& path) {
  return path.extension() == ".csv" || (path.extension() == ".gz" && path.stem().extension() == ".csv");
}

void read_table(CsvReader& csv, const TableFormat& format, const SystemLibrary& systems, CommunicationRows& result) {
  while (csv.next()) {
    TableRow row(csv, systems, result);
    format.read(row);
  }
}

}  // namespace

CommunicationRows read_communication_rows(const std::filesystem::path& data, const SystemLibrary& systems) {
  CommunicationRows result;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(data)) {
    for (const auto& entry : std::filesystem::directory_iterator(data)) {
      if (is_table(entry.path())) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(data);
  }
  bool any = false;
  for (const std::filesystem::path& file : files) {
    CsvReader csv(file);
    const TableFormat* format = table_format(csv);
    if (format == nullptr) {
      result.notes.push_back(fmt::format("{}: no table of collectives", file.filename().string()));
      continue;
    }
    any = true;
    read_table(csv, *format, systems, result);
  }
  if (!any) {
    throw InputError(
        {.source = data.string(),
         .value = files.empty() ? "no .csv or .csv.gz file" : "unknown columns",
         .expected = "a table of collectives (the help of `foretoken validate collectives` lists their columns)"});
  }
  return result;
}

}  // namespace foretoken
