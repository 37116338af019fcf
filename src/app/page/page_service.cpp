#include "app/page/page_service.h"

#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "app/http/site_check.h"
#include "app/page/page_examples.h"
#include "app/page/page_facts.h"
#include "app/page/page_html.h"
#include "base/error.h"
#include "base/field_braces.h"
#include "base/text.h"
#include "serving/run_formats/run_formats.h"

namespace foretoken {
namespace {

constexpr std::chrono::milliseconds look_for_news{5};
constexpr size_t most_kept_bytes = size_t{64} << 20;
constexpr ConnectionId nobody = std::numeric_limits<ConnectionId>::max();  // no connection has it

Json error_json(const std::string& message, const InputProblem& problem = {}) {
  Json error = Json::object({{"message", message}});
  const std::pair<const char*, const std::string*> parts[] = {{"source", &problem.source},
                                                              {"path", &problem.path},
                                                              {"value", &problem.value},
                                                              {"expected", &problem.expected},
                                                              {"suggestion", &problem.suggestion}};
  for (const auto& [name, text] : parts) {
    if (!text->empty()) error.set(name, without_literal_marks(*text));
  }
  return Json::object({{"error", std::move(error)}});
}

HttpResponse error_response(int status, const std::string& message, const InputProblem& problem = {}) {
  return {.status = status, .body = error_json(message, problem).dump(0), .headers = {{"Cache-Control", "no-store"}}};
}

HttpResponse page_response() {
  return {.body = std::string(page_html()),
          .content_type = "text/html; charset=utf-8",
          // What the page itself may do is in the page; this keeps it out of others' frames.
          .headers = {{"Cache-Control", "no-cache"},
                      {"X-Frame-Options", "DENY"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}}};
}

bool is_json(std::string_view content_type) {
  const std::string type = lower_case(content_type.substr(0, content_type.find(';')));
  return type == "application/json" || type == "application/json ";
}

Answer answer_with_files(const RunRequest& request, const UploadFolder& folder, const Library& library) {
  if (request.upload->is_run) check_deployment(read_run(folder.place()).deployment, library);
  return request.question_at(folder.place()).answer(library);
}

std::string run_answer(const RunRequest& request, const UploadFolder* folder, const Library& library) {
  try {
    const Answer answer =
        folder != nullptr ? answer_with_files(request, *folder, library) : request.question().answer(library);
    // The page's figures need results; why there are none, and what helps, is in the text.
    if (!answer.has_results) return error_json(answer.text).dump(0);
    return Json::object({{"command_line", request.command_line()},
                         {"answer", answer.json},
                         {"text", answer.text},
                         {"exit_status", answer.exit_status}})
        .dump(0);
  } catch (const InputError& error) {
    return error_json(error.what(), error.problem()).dump(0);
  } catch (const std::bad_alloc&) {
    return error_json("not enough memory for this input").dump(0);
  } catch (const std::exception& error) {
    return error_json(fmt::format("foretoken has a defect: {}", error.what())).dump(0);
  }
}

std::string run_answer(const RunRequest& request, const Library& library) {
  if (!request.upload) return run_answer(request, nullptr, library);
  try {
    const UploadFolder folder(request.upload->files);
    return folder.hidden_in(run_answer(request, &folder, library));
  } catch (const InputError& error) {
    return error_json(error.what(), error.problem()).dump(0);
  }
}

// An event of a stream (HTML standard, server-sent events); JSON on one line needs no further care.
std::string event_text(std::string_view kind, std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", kind, json);
}

void begin_events(HttpServer& server, ConnectionId connection) {
  server.begin_stream(connection, {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}}});
}

// As the page asks it.
RunRequest first_example(const Library& library) {
  Json question = parse_json(page_examples().front().question, "example");
  const Json drawn = parse_json(drawn_fields(), "drawn");
  for (const auto& [name, value] : drawn.members()) question.set(name, value);
  return read_run_request(question.dump(0), library);
}

bool is_error(std::string_view result) {
  return result.starts_with(R"({"error")");
}

}  // namespace

PageService::PageService(Library library, PageSettings settings)
    : library_(std::move(library)),
      settings_(std::move(settings)),
      facts_(page_facts(library_).dump(0)),
      kept_(most_kept_bytes),
      pool_(settings_.pool) {
  if (settings_.answers_first_example) submit(nobody, first_example(library_));
}

void PageService::requested(ConnectionId connection, HttpRequest&& request) {
  if (const std::string problem = own_site_problem(request, settings_.further_hosts); !problem.empty()) {
    return server_->respond(connection, error_response(403, problem));
  }
  if (request.path == "/api/run" && request.method == "POST") return run(connection, request);
  server_->respond(connection, answer_now(request));
}

HttpResponse PageService::answer_now(const HttpRequest& request) const {
  const bool is_page = request.path == "/";
  if (!is_page && request.path != "/api/library" && request.path != "/api/run") {
    return error_response(404, "there is no such page");
  }
  if (request.method != "GET" || request.path == "/api/run") {
    HttpResponse response = error_response(405, "this address takes another method");
    response.headers.emplace_back("Allow", request.path == "/api/run" ? "POST" : "GET");
    return response;
  }
  return is_page ? page_response() : HttpResponse{.body = facts_, .headers = {{"Cache-Control", "no-store"}}};
}

void PageService::run(ConnectionId connection, const HttpRequest& request) {
  // A form of another site could send anything but this type.
  if (!is_json(request.header("content-type"))) {
    return server_->respond(connection, error_response(415, "the body must be application/json"));
  }
  RunRequest asked;
  try {
    asked = read_run_request(request.body, library_);
  } catch (const InputError& error) {
    return server_->respond(connection, error_response(400, error.what(), error.problem()));
  }
  const bool events = request.header("accept").find("text/event-stream") != std::string_view::npos;
  if (const std::string* known = asked.upload ? nullptr : kept_.find(asked.text())) {
    if (events) begin_events(*server_, connection);
    return send_result(connection, events, *known);
  }
  if (!submit(connection, std::move(asked))) {
    return server_->respond(connection, error_response(503, "too much is asked at once: try again"));
  }
  asked_[connection].events = events;
  if (events) begin_events(*server_, connection);
}

bool PageService::submit(ConnectionId connection, RunRequest asked) {
  const std::string too_late =
      error_json(fmt::format("stopped after {} s: ask for less",
                             std::chrono::duration_cast<std::chrono::seconds>(settings_.pool.most_time).count()))
          .dump(0);
  std::string question = asked.upload ? std::string() : asked.text();
  const auto work = [asked = std::move(asked), this] { return run_answer(asked, library_); };
  if (!pool_.submit(connection, work, too_late)) return false;
  asked_[connection] = {.question = std::move(question)};
  return true;
}

void PageService::send_result(ConnectionId connection, bool events, const std::string& result) {
  if (events) {
    server_->write(connection, event_text(is_error(result) ? "error" : "answer", result));
    server_->end_stream(connection);
  } else {
    server_->respond(
        connection,
        {.status = is_error(result) ? 422 : 200, .body = result, .headers = {{"Cache-Control", "no-store"}}});
  }
}

void PageService::left(ConnectionId connection) {
  asked_.erase(connection);
  pool_.cancel(connection);
}

void PageService::stopping() {
  static const std::string why = error_json("the server was stopped").dump(0);
  for (const auto& [connection, asked] : std::exchange(asked_, {})) {
    pool_.cancel(connection);
    if (connection != nobody) send_result(connection, asked.events, why);
  }
}

HttpResponse PageService::refusal(int status, const std::string& why) {
  return error_response(status, why);
}

std::optional<ServerTime> PageService::next_wake() const {
  if (asked_.empty()) return std::nullopt;
  return std::chrono::steady_clock::now() + look_for_news;
}

void PageService::wake() {
  for (WorkNews& news : pool_.take_news()) {
    const auto found = asked_.find(news.id);
    if (found == asked_.end()) continue;
    Asked& asked = found->second;
    if (!news.is_result) {
      if (asked.events) server_->write(news.id, event_text("progress", Json::object({{"text", news.text}}).dump(0)));
      continue;
    }
    if (news.id != nobody) send_result(news.id, asked.events, news.text);
    if (!is_error(news.text) && !asked.question.empty()) kept_.keep(std::move(asked.question), std::move(news.text));
    asked_.erase(found);
  }
}

}  // namespace foretoken
