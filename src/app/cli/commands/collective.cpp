#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/astra_flags.h"
#include "app/cli/flags/choice_names.h"
#include "app/cli/flags/communication_kernel_flags.h"
#include "app/cli/flags/machine_flags.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quantity_text.h"
#include "base/text.h"
#include "network/calibration/stack_collectives.h"
#include "network/topology/topology_text.h"
#include "report/network/collective_plot.h"
#include "report/network/collective_report.h"
#include "report/network/link_use_csv.h"
#include "report/parts/device_notes.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> any_size{.least = 0, .most = int64_t{1} << 50};

constexpr int64_t most_group_ranks = 100'000'000;

class CollectiveCommand : public Command {
 public:
  void declare(Options& options) override {
    machine_.declare_machine(options);
    options.heading("Collective");
    options_ = &options;
    std::vector<std::string> operations = names_of(collective_kind_names);
    for (const std::string& name : CommunicationKernelFlags::expert_operations()) operations.push_back(name);
    options.choice("--op", op_, operations, "Operation that the ranks perform");
    options.text("--bytes", bytes_,
                 "Message size as in nccl-tests, for example 4096, 4K, 64M or 1G (powers of 1024; 1GB = 10^9): the "
                 "buffer of one rank, or the result of all_gather");
    options.text("--sizes", sizes_, "Range of message sizes, doubling from the first to the last, for example 1K:1G");
    options.text("--pair-bytes", pair_bytes_,
                 "For all_to_all: CSV file with the bytes of each pair of ranks (columns from, to, bytes)");
    options.integer("--ranks", ranks_, {.least = 0, .most = most_group_ranks},
                    "Number of ranks in the group; 0 = all devices. A cluster gets as many nodes as the ranks need");
    options.integer("--stride", stride_, {.least = 1, .most = most_group_ranks},
                    "Distance between the devices of the group: 8 takes one device from each node of 8");
    options.list("--group", group_,
                 "Devices of the group in rank order, instead of --ranks and --stride, for example 0,8,16,24");
    options.integer("--root", root_, {.least = 0},
                    "Rank that sends or receives the data of broadcast, reduce, gather and scatter");
    options.heading("How");
    options.text("--algorithm", algorithm_,
                 fmt::format("Algorithm: auto = NCCL's choice; best = the fastest of all; or one of {}",
                             fmt::join(collective_algorithm_names(), ", ")));
    options.choice("--protocol", protocol_, names_of(protocol_names, {"auto"}),
                   "Protocol: ll and ll128 for small messages, simple for large ones; ideal = the links alone");
    machine_.declare_fidelity(options, "--fidelity");
    options.integer("--concurrent", concurrent_, {.least = 1, .most = 4096},
                    "Number of identical groups that run at the same time (flow simulation)");
    options.flag("--links", links_, "Also show the traffic on the links");
    options.text("--link-use", link_use_,
                 "Write the traffic of each link over time to this CSV file (flow simulation)");
    options.text("--plot", plot_, "Plot bus bandwidth against message size in this SVG file");
    options.list("--known", known_,
                 "A time you measured for this --op and these ranks, which corrects the other predictions, for example "
                 "256M=12ms");
    kernel_.declare(options);
    astra_.declare(options);
    options.show_first({"--cluster", "--node", "--topology", "--op", "--bytes", "--sizes", "--ranks", "--algorithm",
                        "--protocol", "--fidelity", "--kernel", "--links", "--plot"});
    options.footer(
        "Examples:\n  foretoken collective --node hgx_h100 --op all_reduce --sizes 1K:1G\n  foretoken collective "
        "--cluster h100_ib_rail --op all_reduce --bytes 1G --ranks 256\n  foretoken collective --cluster h100_ib_rail "
        "--op all_gather --bytes 64M --ranks 32 --stride 8\n  foretoken collective --cluster h100_ib_rail --op "
        "all_to_all --bytes 64M --ranks 64 --fidelity flow --links\n  foretoken collective --node l40s_pcie --op "
        "all_reduce --sizes 1M:1G --known 256M=60ms\n  foretoken collective --node hgx_h100 --op all_reduce --sizes "
        "1K:1M --kernel vllm\n  foretoken collective --cluster h100_ib_rail --ranks 32 --op dispatch --kernel "
        "deepep-normal \\\n    --tokens 4096 --hidden 7168 --top-k 8 --experts 256 --sms 20\n  foretoken collective "
        "--topology ring:16@50GB/s,500ns --op all_reduce --bytes 64M --algorithm ring\n  foretoken collective "
        "--astra-compatible --topology Ring_Switch --dims 8x8 --bandwidth 100_50 \\\n    --latency 500_1000 "
        "--algorithm ring_ring --op all_reduce --bytes 64M\nThe time is the sum of startup, message latencies and the "
        "bytes over the busiest links. Bus bandwidth, as in\nnccl-tests, is the data that every rank must send divided "
        "by the time: compare it with the link bandwidth.\nTopologies:\n" +
        topology_kinds_text());
  }

  Answer run(const Library& library) const override {
    if (astra_.wanted) return astra();
    if (kernel_.wanted(op_)) return kernel_calls(library);
    options_->refuse({"--eager"}, {AstraFlags::heading, CommunicationKernelFlags::expert_heading},
                     fmt::format("{} by nccl", op_));
    CollectiveOptions options = machine_.collective_options();
    options.reports_links = links_;
    options.uneven = !pair_bytes_.empty();
    options.records_link_use = !link_use_.empty();
    if (options.records_link_use && options.fidelity != Fidelity::flow)
      throw InputError({.source = "--link-use", .value = "with --fidelity closed", .expected = "--fidelity flow"});
    if (options.records_link_use && !sizes_.empty())
      throw InputError({.source = "--link-use", .value = "several sizes", .expected = "one size (--bytes 64M)"});
    const CollectiveKind kind = collective_kind_from_name(op_).value();
    const CollectiveMachine machine = machine_.machine(
        library, options,
        [&](int64_t devices) {
          const int64_t ranks = group_on(devices).size();
          return known_times([&](double bytes) { return nccl_call({.kind = kind, .ranks = ranks, .bytes = bytes}); });
        },
        ranks_ > 0 ? (ranks_ - 1) * stride_ + 1 : 0);
    const CollectiveModel& model = machine.model;
    CollectiveRequest request{.kind = kind,
                              .group = group_on(model.device_count()),
                              .root = root_,
                              .choice = {.algorithm = algorithm_},
                              .concurrent = concurrent_};
    if (protocol_ != "auto") request.choice.protocol = named<Protocol>(protocol_names, protocol_);
    CollectiveReport report{.machine = model.name(),
                            .group = group_text(request.group),
                            .kind = request.kind,
                            .ranks = request.group.size(),
                            .options = options,
                            .concurrent = concurrent_};
    if (!pair_bytes_.empty()) {
      request.pairs = read_pair_bytes(pair_bytes_, request.group.size());
      report.rows.push_back({.bytes = request.pairs->most_sent(), .estimate = model.estimate(request)});
    }
    for (const int64_t bytes : sizes()) {
      request.bytes = static_cast<double>(bytes);
      report.rows.push_back({.bytes = request.bytes, .estimate = model.estimate(request)});
    }
    if (!known_.empty()) {
      for (const CollectiveRow& row : report.rows) {
        if (row.estimate.source == "formula" || row.estimate.source == "flow") refuse_known();
      }
      check_known(*machine.measured, [&](double bytes) {
        return nccl_call({.kind = kind, .ranks = request.group.size(), .bytes = bytes});
      });
    }
    Answer answer{.text = collective_text(report), .json = collective_json(report)};
    if (machine.device) add_like_note(answer.text, answer.json, *machine.device);
    if (!link_use_.empty()) {
      write_file(link_use_, link_use_csv(model.topology(), report.rows.front().estimate.link_use));
      answer.text += fmt::format("wrote {}\n", link_use_);
    }
    if (!plot_.empty()) {
      write_file(plot_, collective_plot(report));
      answer.text += fmt::format("wrote {}\n", plot_);
    }
    return answer;
  }

 private:
  using CallOfBytes = std::function<std::optional<CommunicationCall>(double bytes)>;

  [[noreturn]] static void refuse_known() {
    throw InputError({.source = "--known",
                      .value = "for a collective without a model of NCCL",
                      .expected = "all_reduce, all_gather, reduce_scatter or all_to_all inside one node, --fidelity "
                                  "closed, --algorithm and --protocol auto"});
  }

  // Small messages first: what they tell changes large ones, hardly the other way round.
  std::vector<KnownTime> known_times(const CallOfBytes& call_of) const {
    std::vector<KnownTime> times;
    for (const std::string& text : known_) {
      const size_t sign = text.find('=');
      const std::optional<Seconds> time =
          sign == std::string::npos ? std::nullopt : parse_duration(std::string_view(text).substr(sign + 1));
      if (!time || time->value() <= 0)
        throw InputError(
            {.source = "--known", .value = printable(text), .expected = "size=time, for example 256M=12ms"});
      const int64_t bytes = parse_byte_size("--known", text.substr(0, sign), {.least = 1, .most = any_size.most});
      const std::optional<CommunicationCall> call = call_of(static_cast<double>(bytes));
      if (!call) refuse_known();
      times.push_back({.call = *call, .seconds = time->value()});
    }
    std::stable_sort(times.begin(), times.end(),
                     [](const KnownTime& a, const KnownTime& b) { return a.call.bytes < b.call.bytes; });
    return times;
  }

  // A time that changes nothing, or that the law cannot meet, must not pass for one that was used.
  void check_known(const CommunicationPredictor& predictor, const CallOfBytes& call_of) const {
    constexpr double met_within = 0.2;
    for (const KnownTime& one : known_times(call_of)) {
      const std::string given = fmt::format("{:.0f} bytes in {}", one.call.bytes, duration_text(one.seconds));
      if (!predictor.learns_from(one.call))
        throw InputError({.source = "--known",
                          .value = given + ", which adds no information",
                          .expected =
                              "a message of at most 64 KiB to calibrate latency, or a larger one between more than two "
                              "devices on PCIe to calibrate bandwidth"});
      const std::optional<CommunicationTime> met = predictor.estimate(one.call);
      if (!met || std::abs(met->seconds.value / one.seconds - 1) > met_within)
        throw InputError({.source = "--known",
                          .value = given,
                          .expected = fmt::format("a time that agrees with the other measured times: this one gives {}",
                                                  met ? duration_text(met->seconds.value) : "none")});
    }
  }

  Answer kernel_calls(const Library& library) const {
    kernel_.check_given(*options_, op_);
    const bool is_expert = CommunicationKernelFlags::is_expert(op_);
    if (!is_expert && op_ != "all_reduce")
      throw InputError({.source = "--kernel",
                        .value = fmt::format("{} for {}", kernel_.kernel, op_),
                        .expected = "all_reduce, dispatch or combine; only NCCL runs the others"});
    const auto ranks_on = [&](int64_t devices) { return ranks_ > 0 ? ranks_ : devices; };
    const auto call_on = [&](int64_t devices) {
      return [&, devices](double bytes) { return kernel_.all_reduce_call(ranks_on(devices), bytes); };
    };
    const CollectiveMachine machine = machine_.machine(library, {}, [&](int64_t devices) {
      return is_expert ? std::vector<KnownTime>() : known_times(call_on(devices));
    });
    const int64_t devices = machine.model.device_count();
    const KernelCallReport report = is_expert ? kernel_.expert_traffic(machine, op_, ranks_on(devices))
                                              : kernel_.all_reduces(machine, ranks_on(devices), sizes());
    if (!is_expert) check_known(*machine.measured, call_on(devices));
    Answer answer{.text = kernel_call_text(report), .json = kernel_call_json(report)};
    if (machine.device) add_like_note(answer.text, answer.json, *machine.device);
    return answer;
  }

  ProcessGroup group_on(int64_t devices_of_machine) const {
    if (group_.empty()) {
      const int64_t fit = (devices_of_machine + stride_ - 1) / stride_;
      const int64_t all = op_ == "send_recv" ? 2 : fit;
      return ProcessGroup::strided(0, ranks_ > 0 ? ranks_ : all, stride_);
    }
    if (ranks_ > 0 || stride_ > 1)
      throw InputError({.source = "--group",
                        .value = "together with --ranks or --stride",
                        .expected = "either the list of devices, or --ranks and --stride"});
    std::vector<int32_t> devices;
    for (const std::string& text : group_)
      devices.push_back(
          static_cast<int32_t>(parse_size("--group", text, {.least = 0, .most = (int64_t{1} << 31) - 1})));
    return ProcessGroup::of(std::move(devices));
  }

  static std::string group_text(const ProcessGroup& group) {
    if (group.stride() == 0) return counted(group.size(), "rank") + " as listed";
    return group.stride() == 1 ? counted(group.size(), "rank")
                               : fmt::format("{} ranks, {} apart", group.size(), group.stride());
  }

  std::vector<int64_t> sizes() const {
    const int given = !bytes_.empty() + !sizes_.empty() + !pair_bytes_.empty();
    if (given > 1 || (given == 0 && op_ != "barrier")) {
      throw InputError({.source = "--bytes, --sizes, --pair-bytes",
                        .value = given == 0 ? "none of them" : "more than one",
                        .expected = "one size (--bytes 64M), a range (--sizes 1K:1G) or a table"});
    }
    if (!pair_bytes_.empty()) return {};
    if (bytes_.find_first_of(",:") != std::string::npos) {
      throw InputError({.source = "--bytes",
                        .value = printable(bytes_),
                        .expected = "one size; --sizes 1K:1G takes a range, which doubles from the first to the last"});
    }
    if (sizes_.empty()) return {bytes_.empty() ? 0 : parse_byte_size("--bytes", bytes_, any_size)};
    if (sizes_.find(':') == std::string::npos)
      throw InputError(
          {.source = "--sizes", .value = sizes_, .expected = "the first and the last size, for example 1K:1G"});
    return parse_sizes("--sizes", sizes_, any_size, &parse_byte_size);
  }

  Answer astra() const {
    options_->allow_only({"--topology", "--op", "--bytes", "--sizes", "--algorithm"}, {AstraFlags::heading},
                         "--astra-compatible");
    const std::optional<CollectiveKind> kind = collective_kind_from_name(op_);
    if (!kind)
      throw InputError(
          {.source = "--op", .value = op_, .expected = "a collective that ASTRA-sim supports: all_reduce, ..."});
    std::string no_closed_form;
    bool any = false;
    Table table({{"bytes"}, {"nanoseconds"}, {"", Table::Align::left}});
    Json rows = Json::array();
    for (const int64_t bytes : sizes()) {
      const AstraTime time = astra_time(astra_.run_of(*kind, bytes, machine_.topology, algorithm_));
      Json row = Json::object({{"bytes", bytes}});
      any = any || time.nanoseconds;
      no_closed_form = time.no_closed_form;
      if (time.nanoseconds) {
        row.set("nanoseconds", *time.nanoseconds);
      } else {
        row.set("no_closed_form", time.no_closed_form);
      }
      rows.push(std::move(row));
      table.add({fmt::format("{}", bytes), time.nanoseconds ? fmt::format("{}", *time.nanoseconds) : "-",
                 time.no_closed_form.empty() ? "" : "no closed form: " + time.no_closed_form});
    }
    if (!any)
      throw InputError({.source = "--astra-compatible",
                        .value = "no closed form: " + no_closed_form,
                        .expected = "a run whose time a formula gives (docs/network.md lists those without one)"});
    return {.text = fmt::format("{} as ASTRA-sim counts it\n", op_) + table.text(),
            .json = Json::object({{"op", op_}, {"topology", machine_.topology}, {"rows", std::move(rows)}})};
  }

  MachineFlags machine_;
  const Options* options_ = nullptr;  // what was given; lives as long as the command line
  std::string bytes_, sizes_, pair_bytes_, plot_, link_use_;
  std::string op_ = "all_reduce", algorithm_ = "auto", protocol_ = "auto";
  std::vector<std::string> group_, known_;
  int64_t ranks_ = 0, stride_ = 1, root_ = 0, concurrent_ = 1;
  bool links_ = false;
  CommunicationKernelFlags kernel_;
  AstraFlags astra_;
};

}  // namespace

std::unique_ptr<Command> make_collective() {
  return std::make_unique<CollectiveCommand>();
}

}  // namespace foretoken
