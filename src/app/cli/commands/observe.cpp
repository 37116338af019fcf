#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/load_flags.h"
#include "app/cli/grammar/launch_text.h"
#include "app/cli/grammar/ranks.h"
#include "app/cli/output/progress.h"
#include "app/observe/load_client.h"
#include "base/error.h"
#include "report/serving/measured_run_report.h"
#include "serving/runs/run_folder.h"

namespace foretoken {
namespace {

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

class ObserveCommand : public Command {
 public:
  ObserveCommand() {
    // Polite to a server that others use: one request a second, and an end.
    load_.request_rate = "1";
    load_.num_prompts = 60;
  }

  void declare(Options& options) override {
    options_ = &options;
    options.heading("Server");
    options.text("--url", url_, "Address of the server, for example http://localhost:8000 or https://llm.example.org",
                 true);
    options.text("--ca-file", authorities_,
                 "Certificates (PEM) to trust beside those of the system, for an https server with its own authority");
    options.choice("--api", api_, {"completions", "chat"},
                   "API to send requests to: /v1/completions or /v1/chat/completions");
    options.text("--model", client_.model, "Model name to request [the first one the server lists]");
    options.text("--api-key-env", key_variable_,
                 "Environment variable that holds the API key; if it is not set, no key is sent");
    options.flag("--ignore-eos", client_.ignore_eos,
                 "Force outputs of exactly the requested length (supported by vLLM, SGLang and TensorRT-LLM) [on]");
    options.heading("Limits");
    options.number("--max-seconds", client_.most_seconds, {.least = 0.1, .most = 1e6},
                   "End the run after this many seconds; unanswered requests are canceled");
    options.integer("--max-connections", client_.most_open, {.least = 1, .most = 100'000},
                    "Maximum number of requests in flight; others wait in the client");
    options.number("--request-timeout", client_.request_timeout_s, {.least = 0.1, .most = 1e6},
                   "Time in seconds after which a request without an answer counts as failed");
    options.integer("--retries", client_.retries, {.least = 0, .most = 100},
                    "Number of retries after status 429, 502, 503, 504 or a lost connection, with increasing pauses");
    options.integer("--num-warmups", client_.warmups, {.least = 0, .most = 100'000},
                    "Number of requests sent before the run and not counted");
    load_.declare(options);
    options.heading("Results");
    options.text("--out", out_, "Folder for the run: run.json, requests.csv and metrics.csv");
    options.flag("--overwrite", overwrite_, "Replace a run that is already in the folder");
    options.text("--name", name_, "Name of the run, for reports");
    options.number("--metrics-interval", client_.metrics_interval_s, {.least = 0, .most = 3600},
                   "Time between samples of the server's /metrics, in seconds; 0 = no samples");
    options.text(
        "--launch-line", launch_line_,
        "Command that started the server, as text or @FILE (see serve --from); stored in run.json as the deployment");
    options.text("--device", device_, "GPU of the server, stored in run.json (`foretoken devices` lists them)");
    goals_.declare(options);
    options.show_first({"--url", "--model", "--api-key-env", "--max-seconds", "--num-prompts", "--request-rate",
                        "--max-concurrency", "--dataset-name", "--random-input-len", "--random-output-len", "--trace",
                        "--out", "--goodput"});
    options.footer(
        "Sends real requests: by default one request per second (with --max-concurrency: the next one as soon as one "
        "ends), 60 in total, for at most 10 minutes.\nCtrl-C ends the run and "
        "writes what was measured so far.\nExamples:\n  foretoken observe --url http://localhost:8000 --request-rate 4 "
        "--num-prompts 400 --out path/to/run\n  foretoken observe --url http://localhost:8000 --api chat "
        "--max-concurrency 16 --num-prompts 320 \\\n      --random-input-len 1000 --random-output-len 200 --out "
        "path/to/run\n  foretoken observe --url http://localhost:8000 --trace path/to/azure.csv --time-scale 2 \\\n    "
        "  --launch-line 'vllm serve meta-llama/Llama-3.1-8B-Instruct' --device h100_sxm --out path/to/run");
  }

  Answer run(const Library& library) const override {
    load_.check_use(*options_);
    const std::filesystem::path folder = out_;
    if (!out_.empty() && !overwrite_ && std::filesystem::exists(folder / "run.json")) {
      throw InputError({.source = "--out",
                        .value = printable(out_),
                        .expected = "a folder without a run (use --overwrite to replace the existing one)"});
    }
    Json deployment = Json::object();
    if (!launch_line_.empty()) {
      deployment = read_launch_text("--launch-line", launch_line_, experts_of_models(library)).fields;
    }
    if (!device_.empty()) deployment.set("device", device_);
    LoadClientSettings settings = client_;
    settings.server = parse_server_url("--url", url_);
    if (!authorities_.empty() && !settings.server.encrypted) {
      throw InputError({.source = "--ca-file", .value = "with an http:// server", .expected = "an https:// address"});
    }
    settings.authorities = authorities_;
    // OpenSSL writes to sockets that the server may have closed.
    if (settings.server.encrypted) std::signal(SIGPIPE, SIG_IGN);
    settings.chat = api_ == "chat";
    settings.api_key = environment_variable(key_variable_).value_or("");
    settings.seed = static_cast<uint64_t>(load_.seed);
    if (settings.model.empty()) settings.model = served_model(settings);
    settings.stop_at_signals = true;
    settings.progress = [&](const ClientProgress& progress) {
      show_progress(fmt::format("{:.0f} s: {} sent, {} answered, {} failed, {} in flight", progress.seconds,
                                progress.sent, progress.completed, progress.failed, progress.in_flight));
      check_still_wanted();
    };
    const std::string started = now_text();
    const LoadFlags load = sent_load();
    MeasuredRun run = run_load(settings, load.load());
    describe(run, load, settings, std::move(deployment));
    run.started = started;

    const MeasuredRunReport report{.run = run,
                                   .goals = goals_.goals(),
                                   .percentiles = goals_.percentiles(),
                                   .percentile_metrics = goals_.shown_metrics()};
    Answer answer{.text = measured_run_text(report), .json = measured_run_json(report)};
    const bool has_answers = std::any_of(run.requests.begin(), run.requests.end(), [](const MeasuredRequest& one) {
      return one.status == MeasuredStatus::completed;
    });
    if (!has_answers) {
      answer.failure = run.requests.empty() ? "No request was sent." : "No request was answered.";
      answer.text = answer.failure + "\n\n" + answer.text;
    } else if (!out_.empty()) {
      write_run_folder(folder, run);
      answer.text += fmt::format("wrote {}\n", out_);
      answer.json.set("run", out_);
    }
    return answer;
  }

 private:
  // With a limit on those in flight and no rate, requests come as soon as they may, as in `serve`.
  LoadFlags sent_load() const {
    LoadFlags load = load_;
    if (load.max_concurrency > 0 && !options_->was_given("--request-rate")) load.request_rate = "inf";
    return load;
  }

  void describe(MeasuredRun& run, const LoadFlags& load, const LoadClientSettings& settings, Json deployment) const {
    run.name = name_;
    run.tool = "foretoken observe";
    run.tool_version = FORETOKEN_VERSION;
    run.model = settings.model;
    run.device = device_;
    if (deployment.find("model") == nullptr) deployment.set("model", settings.model);
    run.deployment = std::move(deployment);
    if (load.trace.empty()) {
      run.load.request_rate = load.rate();
      run.load.burstiness = load.arrivals.burstiness;
    }
    if (load.max_concurrency > 0) run.load.max_concurrency = load.max_concurrency;
    run.load.num_prompts = static_cast<int64_t>(run.requests.size());
    run.load.dataset = load.trace.empty() ? load.dataset : load.trace;
    double begin = 0, end = 0, input = 0, output = 0;
    int64_t completed = 0;
    for (const MeasuredRequest& request : run.requests) {
      if (!request.e2e_s) continue;
      if (completed == 0) begin = request.sent();
      begin = std::min(begin, request.sent());
      end = std::max(end, request.sent() + *request.e2e_s);
      input += static_cast<double>(request.input_tokens);
      output += static_cast<double>(request.output_tokens);
      ++completed;
    }
    if (completed == 0) return;
    run.seconds = end - begin;
    run.load.input_len = input / static_cast<double>(completed);
    run.load.output_len = output / static_cast<double>(completed);
  }

  const Options* options_ = nullptr;
  std::string url_, authorities_, api_ = "completions", key_variable_ = "OPENAI_API_KEY", out_, name_, launch_line_,
                                  device_;
  bool overwrite_ = false;
  LoadClientSettings client_;
  LoadFlags load_;
  GoalFlags goals_;
};

}  // namespace

std::unique_ptr<Command> make_observe() {
  return std::make_unique<ObserveCommand>();
}

}  // namespace foretoken
