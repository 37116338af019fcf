// The server behind `foretoken ui`: the page, the library of facts, and commands that the page asks for.
//   GET /             the page
//   GET /api/library  page_facts.h
//   POST /api/run     run_request.h -> {"command_line", "answer", "text"} or {"error": {"message", ...}}; to a client
//                     that accepts text/event-stream, events `progress` {"text"} and at last `answer` or `error`
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/http/server.h"
#include "app/page/work_pool.h"
#include "library/library.h"

namespace foretoken {

struct PageSettings {
  std::vector<std::string> further_hosts;  // names, beside addresses and localhost, by which the server is reached
  WorkPoolSettings pool;
};

class PageService : public HttpService {
 public:
  PageService(Library library, PageSettings settings);
  void answer_through(HttpServer& server) { server_ = &server; }

  void requested(ConnectionId connection, HttpRequest&& request) override;
  void left(ConnectionId connection) override;
  HttpResponse refusal(int status, const std::string& why) override;
  std::optional<ServerTime> next_wake() const override;
  void wake() override;

 private:
  HttpResponse answer_now(const HttpRequest& request) const;
  void run(ConnectionId connection, const HttpRequest& request);

  Library library_;
  PageSettings settings_;
  std::string facts_;  // made once
  HttpServer* server_ = nullptr;
  std::map<ConnectionId, bool> streams_;  // of work under way: whether the client wants events
  WorkPool pool_;
};

}  // namespace foretoken
