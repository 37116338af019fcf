// An OpenAI-compatible server whose engines are simulated: it answers made-up words at the predicted speed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "app/endpoint/completion_answer.h"
#include "app/endpoint/completion_request.h"
#include "app/http/server.h"
#include "app/http/site_check.h"
#include "base/random.h"
#include "serving/online/engine_metrics.h"
#include "serving/online/online_run.h"
#include "serving/online/scaled_clock.h"
#include "serving/results/observer_list.h"

namespace foretoken {

struct EndpointSettings {
  SimulationConfig config;                    // replicas, router, seed
  std::string model_name;                     // that clients ask for
  std::vector<std::string> other_names = {};  // by which they may ask for it too
  std::string version;
  double time_scale = 1;             // 10 = ten times as fast as the engines would be
  double mean_output_tokens = 256;   // of answers that end by themselves
  double failure_rate = 0;           // share of requests answered with status 500
  int64_t embedding_dimensions = 0;  // unless a request says
  bool generates = true;             // false: an encoder, for embeddings alone
  AllowedSites allowed_sites = {};
};

// Each request ends as one of completed, refused and cancelled.
struct EndpointTotals {
  int64_t requests = 0, completed = 0, refused = 0, cancelled = 0;
  int64_t prompt_tokens = 0, completion_tokens = 0;
};

// Simulated time begins with the object.
class Endpoint final : public HttpService, private RunObserver {
 public:
  explicit Endpoint(const EndpointSettings& settings);
  ~Endpoint() override;

  // Where answers go; to be set before it serves, and outlives that.
  void answer_through(HttpServer& server) { server_ = &server; }
  const EndpointTotals& totals() const { return totals_; }

  void requested(ConnectionId connection, HttpRequest&& request) override;
  void left(ConnectionId connection) override;
  HttpResponse refusal(int status, const std::string& why) override;
  std::optional<ServerTime> next_wake() const override;
  void wake() override;
  void stopping() override { stopping_ = true; }

 private:
  struct Answer;
  struct Choice;

  bool watches(int64_t /*request*/) const override { return true; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void request_ended(const RequestRecord& record) override;
  // What the process that sends answers has come to by then (StackCosts::front).
  void deliver(Picoseconds when);
  void send_tokens(const RequestStep& own);
  void end_request(const RequestRecord& record);

  // A whole response, which counts as completed or refused by its status.
  void respond_and_count(ConnectionId connection, const HttpResponse& response);
  HttpResponse look_up(const std::string& path) const;  // GET
  bool is_served(const std::string& model) const;
  HttpResponse no_such_model(const std::string& model) const;
  void complete(CompletionKind kind, ConnectionId connection, const std::string& body);
  // Lengths and forms of its choices; words and blocks come with its requests.
  void draw_choices(Answer& answer, const CompletionRequest& asked) const;
  std::vector<Request> make_requests(Answer& answer, const CompletionRequest& asked);
  void submit(Answer& answer, std::vector<Request> requests, const CompletionRequest& asked, Picoseconds arrival);
  Choice draw_choice(uint64_t key, int64_t prompt_tokens, const CompletionRequest& asked, int64_t index) const;
  static const AnswerSchema* choose_form(const CompletionRequest& asked, uint64_t key, AnsweredChoice& answered);
  // The tokens at which it ends by itself: near `tokens`, as far as the form allows.
  static int64_t draw_document(const AnswerSchema& schema, const CompletionRequest& asked, int64_t tokens,
                               Choice& choice);
  static void end_at_stops(const CompletionRequest& asked, Choice& choice);
  void finish(Answer& answer);
  // What of it still runs is cancelled; all before `when` has happened.
  void forget(Answer& answer, Picoseconds when);
  static HttpResponse rejected(const Answer& answer, Rejection why);
  int64_t longest_sequence() const;  // tokens of a prompt and its answer
  // Why vLLM's server would refuse it, in its words; empty = it does not.
  std::string beyond_length(const CompletionRequest& asked) const;
  static std::string beyond_answer(const Answer& answer, const CompletionRequest& asked);
  Picoseconds now() const { return clock_.simulated(std::chrono::steady_clock::now()); }

  EndpointSettings settings_;
  ScaledClock clock_;
  EngineMetrics metrics_;
  ObserverList observers_;
  OnlineRun run_;
  HttpServer* server_ = nullptr;
  RandomStream failures_;
  int64_t next_request_ = 0, next_answer_ = 0;
  std::unordered_map<ConnectionId, std::unique_ptr<Answer>> answers_;
  std::unordered_map<int64_t, Answer*> answer_of_;  // by request
  std::vector<ConnectionId> shed_;                  // whose answers are over, but not all of their requests
  // Tokens and ends that the engine is done with and clients have not got yet, by when they get them.
  std::multimap<Picoseconds, std::variant<RequestStep, RequestRecord>> on_the_way_;
  EndpointTotals totals_;
  bool stopping_ = false;
};

}  // namespace foretoken
