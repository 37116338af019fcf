#include <iostream>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/replica_flags.h"
#include "app/endpoint/endpoint.h"
#include "app/http/server.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "report/parts/device_notes.h"

namespace foretoken {
namespace {

class EndpointCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    replica_.declare_model(options);
    options.heading("Server");
    options.text("--host", server_.host, "Address to listen on");
    options.integer("--port", port_, {.least = 0, .most = 65'535}, "Port to listen on; 0 = any free port");
    options.integer("--max-connections", max_connections_, {.least = 1, .most = 1'000'000},
                    "Maximum number of connections; others get status 429");
    options.integer("--max-body-bytes", max_body_bytes_, {.least = 1, .most = int64_t{1} << 30},
                    "Maximum size of a request body in bytes; larger ones get status 413");
    options.number("--grace", grace_s_, {.least = 0, .most = 3600},
                   "Time for running requests to finish after SIGINT or SIGTERM, in seconds");
    options.list("--allowed-origins", settings_.allowed_sites.origins,
                 "Web pages that may call this server, by origin, for example http://app.example:3000; * = all. Others "
                 "get status 403");
    options.list("--allowed-hosts", settings_.allowed_sites.hosts,
                 "Host names by which clients may address this server, without the port; * = all. Others get status "
                 "403");
    options.heading("Answers");
    options.number("--time-scale", settings_.time_scale, {.least = 1e-3, .most = 1e6},
                   "Speed relative to the predicted deployment: 10 = ten times faster");
    options.text("--served-model-name", settings_.model_name, "Model name that clients use [the model's name]");
    options.number("--mean-output-len", settings_.mean_output_tokens, {.least = 1, .most = 1e6},
                   "Mean output length in tokens for requests that end before max_tokens");
    options.number("--failure-rate", settings_.failure_rate, {.least = 0, .most = 1},
                   "Share of requests that fail immediately with status 500");
    options.integer("--seed", seed_, {.least = 0}, "Random seed of words, lengths, failures and random routers");
    replica_.declare_engine(options);
    options.heading("Step times");
    declare_calibration(options);
    declare_deployment(options);
    replica_.declare_replicas(options, {.least = 1, .most = 1000});
    options.show_first({"--quantization", "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size",
                        "--enable-expert-parallel", "--engine", "--max-model-len", "--port", "--time-scale",
                        "--served-model-name", "--mean-output-len", "--deployment", "--replicas"});
    options.footer(
        "Prints its address on standard error and serves until SIGINT or SIGTERM.\nExamples:\n  foretoken endpoint "
        "--model Llama-3.1-8B --device h100_sxm\n  foretoken endpoint --model Llama-3.1-70B --device h100_sxm -tp 4 "
        "--replicas 2 --time-scale 10 --port 0\n  curl http://127.0.0.1:8000/v1/completions -d '{\"prompt\": "
        "\"Hello\", \"max_tokens\": 5}'");
  }

  Answer run(const Library& library) const override {
    replica_.lora.check_use(*options_);
    if (replica_.lora.enabled) {
      throw InputError({.source = "--enable-lora",
                        .expected = "no LoRA adapters, because requests to this server cannot select an adapter"});
    }
    const ReplicaGroup group = replica_.build(library, false);
    refuse_unread_scheduler_flags(*options_, {group.config.scheduler});
    EndpointSettings settings = settings_;
    settings.version = "foretoken " FORETOKEN_VERSION;
    const std::string& given = replica_.model.model;
    settings.other_names = {group.model.served_name(), given};
    // As vLLM: the name that was given, unless it is a file's.
    if (settings.model_name.empty())
      settings.model_name = library.models().resolve(given).entry.empty() ? group.model.served_name() : given;
    settings.embedding_dimensions = group.model.hidden;
    settings.generates = !group.model.is_encoder_only();
    settings.config.seed = static_cast<uint64_t>(seed_);
    settings.config.router = replica_.router_name(group.data_parallel_ranks);
    settings.config.replicas.assign(static_cast<size_t>(group.count), group.config);
    HttpServerSettings server_settings = server_;
    server_settings.port = static_cast<int>(port_);
    server_settings.max_connections = static_cast<size_t>(max_connections_);
    server_settings.limits.max_body_bytes = static_cast<size_t>(max_body_bytes_);
    server_settings.grace = std::chrono::milliseconds(static_cast<int64_t>(grace_s_ * 1000));
    server_settings.stop_at_signals = true;
    // As vLLM's server. Pages of origins that are not allowed are refused, so that all others may read their answers.
    server_settings.headers = {{"Access-Control-Allow-Origin", "*"}};
    for (std::string& host : settings.allowed_sites.hosts) host = lower_case(host);
    for (std::string& origin : settings.allowed_sites.origins) origin = lower_case(origin);

    DeviceNotes notes;
    if (group.has_own_kernels) notes.add_kernels(group.models.kernels);
    notes.add_engine(group.memory.flags.engine, group.models.kernels.device());
    notes.add_deployment(library.deployment().get(), group.memory.flags.engine, group.models.kernels.device(),
                         group.model, group.plan);
    if (group.models.collectives) notes.add_network(*group.models.collectives);

    block_stop_signals();
    Endpoint endpoint(settings);
    HttpServer server(server_settings, endpoint);
    endpoint.answer_through(server);
    std::cerr << fmt::format("{} on {} ({}) at http://{}\n", settings.model_name, replica_.model.device,
                             counted(group.count, "replica"), host_and_port(server_.host, server.port()))
              << device_notes_text(notes) << std::flush;
    server.run();
    Answer answer = summary(endpoint.totals());
    set_device_notes(answer.json, notes);
    return answer;
  }

 private:
  static Answer summary(const EndpointTotals& totals) {
    return {.text = fmt::format("{}: {} answered, {} refused, {} canceled by clients or by shutdown; {}, {}\n",
                                counted(totals.requests, "request"), totals.completed, totals.refused, totals.cancelled,
                                counted(totals.prompt_tokens, "prompt token"),
                                counted(totals.completion_tokens, "output token")),
            .json = Json::object({{"requests", totals.requests},
                                  {"answered", totals.completed},
                                  {"refused", totals.refused},
                                  {"cancelled", totals.cancelled},
                                  {"prompt_tokens", totals.prompt_tokens},
                                  {"completion_tokens", totals.completion_tokens}})};
  }

  const Options* options_ = nullptr;
  ReplicaFlags replica_;
  HttpServerSettings server_;
  EndpointSettings settings_;
  int64_t port_ = 8000, max_connections_ = 4096, max_body_bytes_ = 4 << 20, seed_ = 0;
  double grace_s_ = 10;
};

}  // namespace

std::unique_ptr<Command> make_endpoint() {
  return std::make_unique<EndpointCommand>();
}

}  // namespace foretoken
