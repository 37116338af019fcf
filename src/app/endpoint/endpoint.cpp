#include "app/endpoint/endpoint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/endpoint/answer_document.h"
#include "app/endpoint/chunk_stream.h"
#include "app/endpoint/prometheus.h"
#include "app/endpoint/response_answer.h"
#include "base/error.h"
#include "base/field_braces.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int64_t least_prefix_block = 16;  // tokens; caches of single tokens are described in such pieces

constexpr int64_t added_form_bytes = 4096;  // beyond the shortest document: optional members, more items

enum class Route : uint8_t { chat, text, response, embedding, tokenize, detokenize, reset_prefix_cache, look_up };

struct RouteEntry {
  std::string_view path;
  std::string_view method;
  Route route;
};
constexpr RouteEntry routes[] = {{"/v1/chat/completions", "POST", Route::chat},
                                 {"/v1/completions", "POST", Route::text},
                                 {"/v1/responses", "POST", Route::response},
                                 {"/v1/embeddings", "POST", Route::embedding},
                                 {"/tokenize", "POST", Route::tokenize},
                                 {"/detokenize", "POST", Route::detokenize},
                                 {"/reset_prefix_cache", "POST", Route::reset_prefix_cache},
                                 {"/v1/models", "GET", Route::look_up},
                                 {"/health", "GET", Route::look_up},
                                 {"/health/ready", "GET", Route::look_up},
                                 {"/ping", "GET", Route::look_up},
                                 {"/version", "GET", Route::look_up},
                                 {"/load", "GET", Route::look_up},
                                 {"/metrics", "GET", Route::look_up}};

int64_t unix_seconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

std::string answer_id(CompletionKind kind, int64_t number) {
  constexpr std::string_view prefixes[] = {"chatcmpl-", "cmpl-", "embd-", "resp_"};
  return fmt::format("{}{:024x}", prefixes[static_cast<size_t>(kind)], number);
}

constexpr std::string_view model_route = "/v1/models/";

Json model_json(const std::string& name, int64_t max_model_len) {
  return Json::object({{"id", name},
                       {"object", "model"},
                       {"created", int64_t{0}},
                       {"owned_by", "foretoken"},
                       {"max_model_len", max_model_len}});
}

// As vLLM's server answers browsers that ask whether a page may call it.
HttpResponse preflight(const HttpRequest& request) {
  const std::string_view wanted = request.header("access-control-request-headers");
  HttpResponse response{.body = "OK", .content_type = "text/plain; charset=utf-8"};
  response.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, OPTIONS, POST"}, {"Access-Control-Max-Age", "600"}};
  if (!wanted.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", wanted);
  return response;
}

}  // namespace

struct Endpoint::Choice {
  uint64_t key = 0;  // of its words
  int64_t output_tokens = 0;
  int64_t sent = 0;                        // tokens that have come out, but for those of the last step
  int64_t held = 0;                        // these: they go out with the reason of the end
  size_t text_bytes = std::string::npos;   // up to a stop string
  std::optional<AnswerDocument> document;  // that the words must be
  int64_t document_bytes = 0;              // its length
  AnsweredChoice answered;

  std::string generated(int64_t first, int64_t count) const {
    std::string text = answer_text(key, first, count);
    if (document) document->write_over(text, first * static_cast<int64_t>(token_bytes), document_bytes);
    return text;
  }
  // Those that go out: none behind a stop string.
  std::string words(int64_t first, int64_t count) const {
    std::string text = generated(first, count);
    const size_t before = token_bytes * static_cast<size_t>(first);
    if (text_bytes != std::string::npos && before + text.size() > text_bytes) {
      text.resize(text_bytes > before ? text_bytes - before : 0);
    }
    return text;
  }
};

struct Endpoint::Answer {
  Answer(ConnectionId to, AnswerHead its_head)
      : connection(to),
        head(std::move(its_head)),
        events(head.kind == CompletionKind::response ? make_response_stream(head) : make_chunk_stream(head)) {}

  ConnectionId connection;
  AnswerHead head;
  std::unique_ptr<AnswerStream> events;  // where it is a stream
  bool stream = false, include_usage = false, base64 = false;
  int64_t samples = 1, dimensions = 0;
  int64_t first_request = 0;  // those of its choices follow each other
  std::vector<Choice> choices;
  size_t ended = 0;
  TokenUsage usage;
  Rejection rejection = Rejection::none;
  int64_t rejected_input = 0;
};

Endpoint::Endpoint(const EndpointSettings& settings)
    : settings_(settings),
      clock_(std::chrono::steady_clock::now(), settings.time_scale),
      metrics_(settings.config.replicas.size(), settings.config.replicas.front().options.max_model_len),
      observers_({&metrics_, this}),
      run_(settings.config, observers_),
      failures_(settings.config.seed, "failures") {}
Endpoint::~Endpoint() = default;

std::optional<ServerTime> Endpoint::next_wake() const {
  Picoseconds next = run_.next_event();
  if (!on_the_way_.empty()) next = std::min(next, on_the_way_.begin()->first);
  if (next == end_of_time) return std::nullopt;
  return clock_.wall(next);
}

void Endpoint::wake() {
  const Picoseconds when = now();
  run_.advance(when);
  deliver(when);
  for (const ConnectionId connection : std::exchange(shed_, {})) forget(*answers_.at(connection), when);
}

HttpResponse Endpoint::refusal(int status, const std::string& why) {
  ++totals_.requests;  // that never got to `requested`
  ++totals_.refused;
  return error_answer(status, why);
}

void Endpoint::respond_and_count(ConnectionId connection, const HttpResponse& response) {
  ++(response.status < 400 ? totals_.completed : totals_.refused);
  server_->respond(connection, response);
}

void Endpoint::requested(ConnectionId connection, HttpRequest&& request) {
  wake();  // an answer that the connection had is forgotten
  ++totals_.requests;
  if (const std::string why = listed_site_problem(request, settings_.allowed_sites); !why.empty()) {
    return respond_and_count(connection, error_answer(403, why));
  }
  if (request.method == "OPTIONS" && !request.header("origin").empty()) {
    return respond_and_count(connection, preflight(request));
  }
  const RouteEntry* found = nullptr;
  for (const RouteEntry& entry : routes) {
    const bool is_model = entry.path == "/v1/models" && request.path.starts_with(model_route);
    if (entry.path == request.path || is_model) found = &entry;
  }
  if (found == nullptr) {
    return respond_and_count(
        connection,
        error_answer(404, without_literal_marks(fmt::format("this server has no route {}", printable(request.path)))));
  }
  if (found->method != request.method) {
    HttpResponse response = error_answer(405, fmt::format("{} accepts only {}", found->path, found->method));
    response.headers.emplace_back("Allow", found->method);
    return respond_and_count(connection, response);
  }
  try {
    switch (found->route) {
      case Route::chat:
        return complete(CompletionKind::chat, connection, request.body);
      case Route::text:
        return complete(CompletionKind::text, connection, request.body);
      case Route::response:
        return complete(CompletionKind::response, connection, request.body);
      case Route::embedding:
        return complete(CompletionKind::embedding, connection, request.body);
      case Route::look_up:
        return respond_and_count(connection, look_up(request.path));
      case Route::tokenize: {
        Json ids = Json::array();
        for (const TokenId token : read_tokenize_request(request.body)) ids.push(int64_t{token});
        const size_t count = ids.items().size();
        return respond_and_count(
            connection, json_answer(Json::object({{"count", count},
                                                  {"max_model_len", run_.replicas().front().limits().max_model_len},
                                                  {"tokens", std::move(ids)}})));
      }
      case Route::detokenize:
        return respond_and_count(
            connection, json_answer(Json::object({{"prompt", token_text(read_detokenize_request(request.body))}})));
      case Route::reset_prefix_cache:
        return respond_and_count(connection,
                                 run_.forget_prefixes(now())
                                     ? json_answer(Json::object({{"success", true}}))
                                     : error_answer(503, "the prefix cache cannot be reset while requests run"));
    }
  } catch (const InputError& error) {
    respond_and_count(connection, error_answer(400, error.what()));
  }
}

HttpResponse Endpoint::look_up(const std::string& path) const {
  const int64_t max_model_len = run_.replicas().front().limits().max_model_len;
  if (path == "/v1/models") {
    return json_answer(
        Json::object({{"object", "list"}, {"data", Json::array({model_json(settings_.model_name, max_model_len)})}}));
  }
  if (path.starts_with(model_route)) {
    const std::string name = path.substr(model_route.size());
    return is_served(name) ? json_answer(model_json(name, max_model_len)) : no_such_model(name);
  }
  if (path == "/version") return json_answer(Json::object({{"version", settings_.version}}));
  if (path == "/load") return json_answer(Json::object({{"server_load", answers_.size()}}));
  if (path == "/metrics") {
    return {.body = prometheus_text(metrics_, run_.replicas(), settings_.model_name),
            .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  }
  if (stopping_) return error_answer(503, "the server is shutting down");
  return {.content_type = "text/plain"};  // health
}

bool Endpoint::is_served(const std::string& model) const {
  const auto& others = settings_.other_names;
  return model == settings_.model_name || std::find(others.begin(), others.end(), model) != others.end();
}

HttpResponse Endpoint::no_such_model(const std::string& model) const {
  return error_answer(404, fmt::format("The model `{}` does not exist: this is `{}`.",
                                       without_literal_marks(printable(model)), settings_.model_name));
}

void Endpoint::complete(CompletionKind kind, ConnectionId connection, const std::string& body) {
  const CompletionRequest asked = read_completion_request(kind, body);
  if (!asked.model.empty() && !is_served(asked.model)) return respond_and_count(connection, no_such_model(asked.model));
  if (!settings_.generates && kind != CompletionKind::embedding) {
    return respond_and_count(
        connection, error_answer(400, "this model is an encoder, which generates no tokens: use /v1/embeddings"));
  }
  if (settings_.failure_rate > 0 && failures_.uniform() < settings_.failure_rate) {
    return respond_and_count(connection, error_answer(500, "simulated failure (--failure-rate)"));
  }
  if (const std::string why = beyond_length(asked); !why.empty()) {
    return respond_and_count(connection, error_answer(400, why));
  }
  auto made = std::make_unique<Answer>(connection, AnswerHead{.kind = kind,
                                                              .id = answer_id(kind, next_answer_++),
                                                              .created = unix_seconds(),
                                                              .model = settings_.model_name,
                                                              .max_output_tokens = asked.max_tokens,
                                                              .tools = asked.tools,
                                                              .tool_choice = asked.tool_choice,
                                                              .text_format = asked.text_format});
  Answer& answer = *made;
  answer.stream = asked.stream;
  answer.include_usage = asked.include_usage;
  answer.base64 = asked.base64;
  answer.samples = asked.samples;
  answer.dimensions = asked.dimensions.value_or(settings_.embedding_dimensions);
  // Lengths before words: a request that is refused costs nothing.
  draw_choices(answer, asked);
  if (const std::string why = beyond_answer(answer, asked); !why.empty()) {
    return respond_and_count(connection, error_answer(400, why));
  }
  std::vector<Request> requests = make_requests(answer, asked);
  answers_.emplace(connection, std::move(made));
  const Picoseconds arrival = now();
  submit(answer, std::move(requests), asked, arrival);
  if (answer.rejection != Rejection::none) {
    respond_and_count(connection, rejected(answer, answer.rejection));
    forget(answer, arrival);
  } else if (answer.stream) {
    server_->begin_stream(
        connection, {.content_type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
    if (std::string* const out = server_->stream_buffer(connection)) answer.events->begin(*out);
  }
}

int64_t Endpoint::longest_sequence() const {
  const Replica::Limits limits = run_.replicas().front().limits();
  return limits.max_model_len > 0 ? limits.max_model_len : limits.capacity_tokens + 1;
}

std::string Endpoint::beyond_length(const CompletionRequest& asked) const {
  const int64_t longest = longest_sequence();
  for (const std::vector<TokenId>& prompt : asked.prompts) {
    const auto tokens = static_cast<int64_t>(prompt.size());
    if (asked.kind == CompletionKind::embedding) {
      if (tokens <= longest) continue;
      return fmt::format(
          "This model's maximum context length is {} tokens. However, you requested {} tokens in the input for "
          "embedding generation. Please reduce the length of the input.",
          longest, tokens);
    }
    if (tokens >= longest) {
      return fmt::format(
          "This model's maximum context length is {} tokens. However, your request has {} input tokens. Please reduce "
          "the length of the input messages.",
          longest, tokens);
    }
    if (asked.max_tokens && tokens + *asked.max_tokens > longest) {
      return fmt::format(
          "'max_tokens' or 'max_completion_tokens' is too large: {}. This model's maximum context length is {} tokens "
          "and your request has {} input tokens ({} > {} - {}).",
          *asked.max_tokens, longest, tokens, *asked.max_tokens, longest, tokens);
    }
  }
  return "";
}

std::string Endpoint::beyond_answer(const Answer& answer, const CompletionRequest& asked) {
  if (answer.head.kind == CompletionKind::embedding) {
    const auto inputs = static_cast<int64_t>(answer.choices.size());
    if (inputs * answer.dimensions <= most_embedding_values) return "";
    return fmt::format(
        "{} inputs with {} dimensions each give {} numbers. One request may ask for at most {}. Please send fewer "
        "inputs per request, or ask for fewer dimensions.",
        inputs, answer.dimensions, inputs * answer.dimensions, most_embedding_values);
  }
  int64_t tokens = 0;
  for (const Choice& choice : answer.choices) tokens += choice.output_tokens;
  if (tokens > most_answer_tokens) {
    return fmt::format(
        "This request would generate {} tokens. All choices of one request together may have at most {}. Please ask "
        "for fewer choices or tokens.",
        tokens, most_answer_tokens);
  }
  const auto stops = static_cast<int64_t>(asked.stop.size());
  if (tokens * stops <= most_stop_searches) return "";
  return fmt::format(
      "This request would generate {} tokens. A request with {} stop strings may have at most {}. Please send fewer "
      "stop strings, or ask for fewer choices or tokens.",
      tokens, stops, most_stop_searches / stops);
}

void Endpoint::draw_choices(Answer& answer, const CompletionRequest& asked) const {
  for (const std::vector<TokenId>& prompt : asked.prompts) {
    const uint64_t key = prompt_key(prompt, settings_.config.seed);
    const auto tokens = static_cast<int64_t>(prompt.size());
    for (int64_t sample = 0; sample < asked.samples; ++sample) {
      const auto index = static_cast<int64_t>(answer.choices.size());
      answer.choices.push_back(draw_choice(answer_key(key, index), tokens, asked, index));
    }
    answer.usage.prompt_tokens += tokens;
  }
}

std::vector<Request> Endpoint::make_requests(Answer& answer, const CompletionRequest& asked) {
  answer.first_request = next_request_;
  std::vector<Request> requests;
  const int64_t block = std::max(least_prefix_block, settings_.config.replicas.front().options.block_size);
  for (const std::vector<TokenId>& prompt : asked.prompts) {
    const std::vector<int64_t> prompt_blocks = block_numbers(prompt, block);
    for (int64_t sample = 0; sample < asked.samples; ++sample) {
      Choice& choice = answer.choices[requests.size()];
      if (!asked.stop.empty()) end_at_stops(asked, choice);
      Request request{.id = next_request_++,
                      .input_tokens = static_cast<int64_t>(prompt.size()),
                      .output_tokens = choice.output_tokens,
                      .priority = asked.priority,
                      .pooled = asked.kind == CompletionKind::embedding};
      request.prefix_block_tokens = static_cast<int32_t>(block);
      request.prefix_blocks = prompt_blocks;
      request.follows = sample > 0;
      if (!request.pooled) {  // a next prompt of the conversation holds the answer too
        const size_t whole = prompt_blocks.size() * static_cast<size_t>(block);
        std::vector<TokenId> rest(prompt.begin() + static_cast<std::ptrdiff_t>(whole), prompt.end());
        add_tokens(choice.generated(0, choice.output_tokens), rest);
        const std::vector<int64_t> answer_blocks = block_numbers(rest, block);
        request.prefix_blocks.insert(request.prefix_blocks.end(), answer_blocks.begin(), answer_blocks.end());
      }
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

void Endpoint::submit(Answer& answer, std::vector<Request> requests, const CompletionRequest& asked,
                      Picoseconds arrival) {
  for (size_t i = 0; i < requests.size() && answer.rejection == Rejection::none; ++i) {
    Request& request = requests[i];
    request.arrival = arrival;
    answer_of_[request.id] = &answer;
    metrics_.submitted(request, asked.max_tokens.value_or(request.output_tokens), answer.choices[i].answered.reason);
    run_.submit(std::move(request), arrival, answer.first_request);
  }
}

Endpoint::Choice Endpoint::draw_choice(uint64_t key, int64_t prompt_tokens, const CompletionRequest& asked,
                                       int64_t index) const {
  Choice choice{.key = key, .answered = {.index = index}};
  if (asked.kind == CompletionKind::embedding) {
    choice.output_tokens = 1;  // stands for the vector
    return choice;
  }
  const int64_t most = asked.max_tokens.value_or(longest_sequence() - prompt_tokens);
  RandomStream stream(choice.key, "output length");
  int64_t own_end = std::max(
      asked.min_tokens, 1 + static_cast<int64_t>(stream.exponential(std::max(0.0, settings_.mean_output_tokens - 1))));
  if (const AnswerSchema* const schema = choose_form(asked, choice.key, choice.answered)) {
    own_end = draw_document(*schema, asked, asked.ignore_eos ? most : std::min(own_end, most), choice);
  }
  const bool stops = !asked.ignore_eos && own_end <= most;
  choice.output_tokens = stops ? own_end : most;
  choice.answered.reason = stops ? FinishReason::stop : FinishReason::length;
  choice.document_bytes = choice.output_tokens * static_cast<int64_t>(token_bytes);
  choice.answered.completes_call =
      !choice.answered.tool.empty() && choice.document && choice.document->least_bytes() <= choice.document_bytes;
  return choice;
}

// Sets the tool where one must be called.
const AnswerSchema* Endpoint::choose_form(const CompletionRequest& asked, uint64_t key, AnsweredChoice& answered) {
  if (asked.must_call.empty()) return asked.form.get();
  RandomStream stream(key, "tool");
  const CallableTool& tool = asked.must_call[stream.below(asked.must_call.size())];
  answered.tool = tool.name;
  return tool.arguments.get();
}

int64_t Endpoint::draw_document(const AnswerSchema& schema, const CompletionRequest& asked, int64_t tokens,
                                Choice& choice) {
  constexpr auto per_token = static_cast<int64_t>(token_bytes);
  const int64_t answers = static_cast<int64_t>(asked.prompts.size()) * asked.samples;
  const int64_t bytes = std::min(most_form_bytes / answers, std::min(tokens, most_form_bytes) * per_token);
  choice.document =
      make_answer_document(schema, choice.key, std::min(bytes, schema.shortest_bytes() + added_form_bytes));
  const int64_t least = choice.document->least_bytes();
  const int64_t whole = (least + per_token - 1) / per_token;
  // It ends with its last bracket; words in it make it longer where the schema has a place for them.
  const int64_t longest = whole + choice.document->room / per_token;
  return std::max(asked.min_tokens, std::clamp(tokens, whole, longest));
}

// What the engine generates up to the word that completes a stop string; the string itself is not sent.
void Endpoint::end_at_stops(const CompletionRequest& asked, Choice& choice) {
  const std::string text = choice.generated(0, choice.output_tokens);
  for (const std::string& stop : asked.stop) {
    const size_t at = text.find(stop);
    if (at == std::string::npos) continue;
    const auto words = static_cast<int64_t>((at + stop.size() + token_bytes - 1) / token_bytes);
    if (words < asked.min_tokens || words > choice.output_tokens) continue;
    choice.output_tokens = words;
    choice.answered.reason = FinishReason::stop;
    choice.answered.completes_call = false;
    choice.text_bytes = std::min(at, choice.text_bytes);
  }
}

void Endpoint::request_stepped(const RequestStep& own, const StepRecord& step) {
  if (own.sent == 0) return;
  if (own.sending <= 0) return send_tokens(own);
  on_the_way_.emplace(step.end + own.sending, own);
}

void Endpoint::request_ended(const RequestRecord& record) {
  // Where nothing is on the way, its last token has arrived.
  if (on_the_way_.empty() || record.outcome != RequestOutcome::completed) return end_request(record);
  on_the_way_.emplace(record.last_token, record);
}

void Endpoint::deliver(Picoseconds when) {
  while (!on_the_way_.empty() && on_the_way_.begin()->first <= when) {
    const auto arrived = on_the_way_.extract(on_the_way_.begin());
    if (const auto* const step = std::get_if<RequestStep>(&arrived.mapped())) {
      send_tokens(*step);
    } else {
      end_request(std::get<RequestRecord>(arrived.mapped()));
    }
  }
}

void Endpoint::send_tokens(const RequestStep& own) {
  const auto found = answer_of_.find(own.request);
  if (found == answer_of_.end()) return;  // its client has gone
  Answer& answer = *found->second;
  if (answer.rejection != Rejection::none) return;
  Choice& choice = answer.choices[static_cast<size_t>(own.request - answer.first_request)];
  if (choice.sent + own.sent == choice.output_tokens) {
    choice.held = own.sent;
    return;
  }
  if (std::string* const out = answer.stream ? server_->stream_buffer(answer.connection) : nullptr) {
    if (choice.sent == 0) answer.events->add_role(*out, choice.answered);
    answer.events->add_text(*out, choice.answered, choice.words(choice.sent, own.sent));
  }
  choice.sent += own.sent;
}

void Endpoint::end_request(const RequestRecord& record) {
  const auto found = answer_of_.find(record.id);
  if (found == answer_of_.end()) return;  // its client has gone
  Answer& answer = *found->second;
  answer_of_.erase(found);
  if (answer.rejection != Rejection::none) return;  // its answer was that
  Choice& choice = answer.choices[static_cast<size_t>(record.id - answer.first_request)];
  if (record.outcome != RequestOutcome::completed) {
    answer.rejection = record.rejection;
    answer.rejected_input = record.input_tokens;
    // Those that are refused when they come are answered there.
    if (record.rejection <= last_unservable) return;
    const HttpResponse why = rejected(answer, record.rejection);
    if (answer.stream) {  // its status has gone out
      ++totals_.refused;
      if (std::string* const out = server_->stream_buffer(answer.connection)) *out += "data: " + why.body + "\n\n";
      server_->end_stream(answer.connection);
    } else {
      respond_and_count(answer.connection, why);
    }
    // The engines are in the middle of a step: the other choices are cancelled behind it.
    shed_.push_back(answer.connection);
    return;
  }
  choice.answered.record = record;
  if (choice.answered.index % answer.samples == 0) answer.usage.cached_tokens += record.cached_tokens;
  answer.usage.completion_tokens += record.output_tokens;
  if (answer.stream) {
    choice.answered.text = choice.words(choice.sent, choice.held);
    if (std::string* const out = server_->stream_buffer(answer.connection)) {
      if (choice.sent == 0) answer.events->add_role(*out, choice.answered);
      answer.events->add_last(*out, choice.answered);
    }
  } else if (answer.head.kind != CompletionKind::embedding) {
    choice.answered.text = choice.words(0, choice.output_tokens);
  }
  if (++answer.ended == answer.choices.size()) finish(answer);
}

void Endpoint::finish(Answer& answer) {
  ++totals_.completed;
  totals_.prompt_tokens += answer.usage.prompt_tokens;
  totals_.completion_tokens += answer.usage.completion_tokens;
  if (answer.stream) {
    if (std::string* const out = server_->stream_buffer(answer.connection)) {
      answer.events->end(*out, answer.usage, answer.include_usage);
    }
    server_->end_stream(answer.connection);
  } else if (answer.head.kind == CompletionKind::embedding) {
    std::vector<std::vector<float>> vectors;
    for (const Choice& choice : answer.choices) vectors.push_back(made_up_vector(choice.key, answer.dimensions));
    server_->respond(answer.connection, {.body = embedding_text(answer.head, vectors, answer.base64, answer.usage)});
  } else if (answer.head.kind == CompletionKind::response) {
    server_->respond(answer.connection,
                     json_answer(response_json(answer.head, answer.choices.front().answered, answer.usage)));
  } else {
    std::vector<AnsweredChoice> choices;
    for (const Choice& choice : answer.choices) choices.push_back(choice.answered);
    server_->respond(answer.connection, json_answer(completion_json(answer.head, choices, answer.usage)));
  }
  answers_.erase(answer.connection);
}

HttpResponse Endpoint::rejected(const Answer& answer, Rejection why) {
  const int status = why <= last_unservable ? 400 : 503;
  const std::string reason =
      with_field_names(rejection_text(why), [](std::string_view field) { return std::string(field); });
  return error_answer(status, fmt::format("{} (a prompt of {} tokens)", reason, answer.rejected_input));
}

void Endpoint::left(ConnectionId connection) {
  const Picoseconds when = now();
  run_.advance(when);
  deliver(when);
  const auto found = answers_.find(connection);
  if (found == answers_.end()) return;                      // it has just come to its end
  if (found->second->rejection != Rejection::none) return;  // `wake` forgets it
  ++totals_.cancelled;
  forget(*found->second, when);
}

void Endpoint::forget(Answer& answer, Picoseconds when) {
  for (size_t i = 0; i < answer.choices.size(); ++i) {
    const int64_t id = answer.first_request + static_cast<int64_t>(i);
    if (answer_of_.erase(id) == 0) continue;  // ended, or never submitted
    run_.cancel(id, when);
    metrics_.cancelled(id);
  }
  answers_.erase(answer.connection);
}

}  // namespace foretoken
