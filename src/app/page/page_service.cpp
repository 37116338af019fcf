#include "app/page/page_service.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "app/page/page_facts.h"
#include "app/page/page_html.h"
#include "app/page/run_request.h"
#include "app/page/site_check.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::chrono::milliseconds look_for_news{5};

Json error_json(const std::string& message, const InputProblem& problem = {}) {
  Json error = Json::object({{"message", message}});
  const std::pair<const char*, const std::string*> parts[] = {{"source", &problem.source},
                                                              {"path", &problem.path},
                                                              {"value", &problem.value},
                                                              {"expected", &problem.expected},
                                                              {"suggestion", &problem.suggestion}};
  for (const auto& [name, text] : parts) {
    if (!text->empty()) error.set(name, *text);
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

std::string run_answer(const RunRequest& request, const Library& library) {
  try {
    const Answer answer = request.question().answer(library);
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

// An event of a stream (HTML standard, server-sent events); JSON on one line needs no further care.
std::string event_text(std::string_view kind, std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", kind, json);
}

bool is_error(std::string_view result) {
  return result.starts_with(R"({"error")");
}

}  // namespace

PageService::PageService(Library library, PageSettings settings)
    : library_(std::move(library)),
      settings_(std::move(settings)),
      facts_(page_facts(library_).dump(0)),
      pool_(settings_.pool) {}

void PageService::requested(ConnectionId connection, HttpRequest&& request) {
  if (const std::string problem = site_problem(request, settings_.further_hosts); !problem.empty()) {
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
  const std::string too_late =
      error_json(fmt::format("stopped after {} s: ask for less",
                             std::chrono::duration_cast<std::chrono::seconds>(settings_.pool.most_time).count()))
          .dump(0);
  const auto work = [asked = std::move(asked), this] { return run_answer(asked, library_); };
  if (!pool_.submit(connection, work, too_late)) {
    return server_->respond(connection, error_response(503, "too much is asked at once: try again"));
  }
  const bool events = request.header("accept").find("text/event-stream") != std::string_view::npos;
  streams_[connection] = events;
  if (events) {
    server_->begin_stream(connection,
                          {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}}});
  }
}

void PageService::left(ConnectionId connection) {
  streams_.erase(connection);
  pool_.cancel(connection);
}

HttpResponse PageService::refusal(int status, const std::string& why) {
  return error_response(status, why);
}

std::optional<ServerTime> PageService::next_wake() const {
  if (streams_.empty()) return std::nullopt;
  return std::chrono::steady_clock::now() + look_for_news;
}

void PageService::wake() {
  for (const WorkNews& news : pool_.take_news()) {
    const auto found = streams_.find(news.id);
    if (found == streams_.end()) continue;
    const bool events = found->second;
    if (!news.is_result) {
      if (events) server_->write(news.id, event_text("progress", Json::object({{"text", news.text}}).dump(0)));
      continue;
    }
    streams_.erase(found);
    if (events) {
      server_->write(news.id, event_text(is_error(news.text) ? "error" : "answer", news.text));
      server_->end_stream(news.id);
    } else {
      server_->respond(
          news.id,
          {.status = is_error(news.text) ? 422 : 200, .body = news.text, .headers = {{"Cache-Control", "no-store"}}});
    }
  }
}

}  // namespace foretoken
