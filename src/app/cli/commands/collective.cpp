#include <fmt/format.h>

#include "app/cli/astra_flags.h"
#include "app/cli/choice_names.h"
#include "app/cli/commands/list.h"
#include "app/cli/machine_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "network/topology/topology_text.h"
#include "report/collective_plot.h"
#include "report/collective_report.h"
#include "report/table.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> any_size{.least = 0, .most = int64_t{1} << 50};

class CollectiveCommand : public Command {
 public:
  void declare(Options& options) override {
    machine_.declare_machine(options);
    options.heading("Collective");
    options.choice("--op", op_, names_of(collective_kind_names), "What the ranks do");
    options.text("--bytes", bytes_,
                 "Size as in nccl-tests (4096, 4K, 64M, 1G): the buffer of a rank; of all_gather the result");
    options.text("--sizes", sizes_, "Instead: doubling from the first to the last, 1K:1G");
    options.text("--pair-bytes", pair_bytes_,
                 "all_to_all with bytes of its own for each pair: CSV with from, to, bytes (ranks)");
    options.integer("--ranks", ranks_, {.least = 0}, "Ranks of the group; 0 = as many as there are devices");
    options.integer("--stride", stride_, {.least = 1},
                    "Distance of the group's devices: 8 takes one of every node of 8");
    options.list("--group", group_, "Instead: the devices themselves in rank order, 0,8,16,24");
    options.integer("--root", root_, {.least = 0},
                    "Rank that has or gets the data of broadcast, reduce, gather, scatter");
    options.heading("How");
    options.text("--algorithm", algorithm_,
                 fmt::format("auto: as NCCL would choose; best: the fastest of all; or one of {}",
                             fmt::join(collective_algorithm_names(), ", ")));
    options.choice("--protocol", protocol_, names_of(protocol_names, {"auto"}),
                   "ll and ll128: small messages; simple: large ones; ideal: the links alone");
    machine_.declare_fidelity(options, "--fidelity");
    options.integer("--concurrent", concurrent_, {.least = 1, .most = 4096},
                    "Such groups side by side at the same time (flow level)");
    options.flag("--links", links_, "Also what the links carried");
    options.text("--plot", plot_, "Write bus bandwidth over size to this SVG file");
    astra_.declare(options);
    options.footer(
        "Examples:\n"
        "  foretoken collective --node hgx_h100 --op all_reduce --sizes 1K:1G\n"
        "  foretoken collective --cluster h100_ib_rail --op all_reduce --bytes 1G --ranks 256\n"
        "  foretoken collective --cluster h100_ib_rail --op all_gather --bytes 64M --ranks 32 --stride 8\n"
        "  foretoken collective --cluster h100_ib_rail --op all_to_all --bytes 64M --ranks 64 --fidelity flow --links\n"
        "  foretoken collective --topology ring:16@50GB/s,500ns --op all_reduce --bytes 64M --algorithm ring\n"
        "  foretoken collective --astra-compatible --topology Ring_Switch --dims 8x8 --bandwidth 100_50 \\\n"
        "    --latency 500_1000 --algorithm ring_ring --op all_reduce --bytes 64M\n"
        "Time is start-up, messages one behind the other, and bytes over the busiest links. Bus bandwidth is what\n"
        "every rank must send over the time, as nccl-tests prints it: compare it with the link.\n"
        "Topologies:\n" +
        topology_kinds_text());
  }

  Answer run(const Library& library) const override {
    if (astra_.wanted) return astra();
    CollectiveOptions options = machine_.collective_options();
    options.reports_links = links_;
    options.uneven = !pair_bytes_.empty();
    const Machine machine = machine_.machine(library, options);
    const CollectiveModel& model = machine.model;
    CollectiveRequest request{.kind = collective_kind_from_name(op_).value(),
                              .group = group_on(model),
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
    Answer answer{.text = collective_text(report), .json = collective_json(report)};
    if (!plot_.empty()) {
      write_file(plot_, collective_plot(report));
      answer.text += fmt::format("wrote {}\n", plot_);
    }
    return answer;
  }

 private:
  ProcessGroup group_on(const CollectiveModel& model) const {
    if (group_.empty()) {
      const int64_t fit = (model.device_count() + stride_ - 1) / stride_;
      const int64_t all = op_ == "send_recv" ? 2 : fit;
      return ProcessGroup::strided(0, ranks_ > 0 ? ranks_ : all, stride_);
    }
    if (ranks_ > 0 || stride_ > 1)
      throw InputError({.source = "--group",
                        .value = "together with --ranks or --stride",
                        .expected = "the devices, or how many of them and how far apart"});
    std::vector<int32_t> devices;
    for (const std::string& text : group_)
      devices.push_back(
          static_cast<int32_t>(parse_size("--group", text, {.least = 0, .most = (int64_t{1} << 31) - 1})));
    return ProcessGroup::of(std::move(devices));
  }

  static std::string group_text(const ProcessGroup& group) {
    if (group.stride() == 0) return fmt::format("{} ranks as listed", group.size());
    return group.stride() == 1 ? fmt::format("{} ranks", group.size())
                               : fmt::format("{} ranks, {} apart", group.size(), group.stride());
  }

  std::vector<int64_t> sizes() const {
    const int given = !bytes_.empty() + !sizes_.empty() + !pair_bytes_.empty();
    if (given > 1 || (given == 0 && op_ != "barrier")) {
      throw InputError({.source = "--bytes, --sizes, --pair-bytes",
                        .value = given == 0 ? "none of them" : "more than one",
                        .expected = "one size (--bytes 64M), a range of them (--sizes 1K:1G) or a table"});
    }
    if (!pair_bytes_.empty()) return {};
    if (sizes_.empty()) return {bytes_.empty() ? 0 : parse_size("--bytes", bytes_, any_size)};
    const size_t colon = sizes_.find(':');
    if (colon == std::string::npos)
      throw InputError(
          {.source = "--sizes", .value = sizes_, .expected = "the first and the last size, such as 1K:1G"});
    const int64_t first = parse_size("--sizes", sizes_.substr(0, colon), {.least = 1, .most = any_size.most});
    const int64_t last = parse_size("--sizes", sizes_.substr(colon + 1), {.least = first, .most = any_size.most});
    std::vector<int64_t> all;
    for (int64_t size = first; size <= last; size *= 2) all.push_back(size);
    return all;
  }

  Answer astra() const {
    Table table({{"bytes"}, {"nanoseconds"}, {"", Table::Align::left}});
    Json rows = Json::array();
    for (const int64_t bytes : sizes()) {
      const AstraTime time =
          astra_time(astra_.run_of(collective_kind_from_name(op_).value(), bytes, machine_.topology, algorithm_));
      Json row = Json::object({{"bytes", bytes}});
      if (time.nanoseconds) {
        row.set("nanoseconds", *time.nanoseconds);
      } else {
        row.set("no_closed_form", time.no_closed_form);
      }
      rows.push(std::move(row));
      table.add({fmt::format("{}", bytes), time.nanoseconds ? fmt::format("{}", *time.nanoseconds) : "-",
                 time.no_closed_form.empty() ? "" : "no closed form: " + time.no_closed_form});
    }
    return {.text = fmt::format("{} as ASTRA-sim counts it\n", op_) + table.text(),
            .json = Json::object({{"op", op_}, {"topology", machine_.topology}, {"rows", std::move(rows)}})};
  }

  MachineFlags machine_;
  std::string bytes_, sizes_, pair_bytes_, plot_;
  std::string op_ = "all_reduce", algorithm_ = "auto", protocol_ = "auto";
  std::vector<std::string> group_;
  int64_t ranks_ = 0, stride_ = 1, root_ = 0, concurrent_ = 1;
  bool links_ = false;
  AstraFlags astra_;
};

}  // namespace

std::unique_ptr<Command> make_collective() {
  return std::make_unique<CollectiveCommand>();
}

}  // namespace foretoken
