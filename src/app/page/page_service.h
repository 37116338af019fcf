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
#include "app/page/kept_answers.h"
#include "app/page/run_request.h"
#include "app/page/work_pool.h"
#include "library/library.h"

namespace foretoken {

struct PageSettings {
  std::vector<std::string> further_hosts;  // names, beside addresses and localhost, by which the server is reached
  WorkPoolSettings pool;
  bool answers_first_example = true;  // when it starts, so that the page opens with an answer
};

class PageService : public HttpService {
 public:
  PageService(Library library, PageSettings settings);
  void answer_through(HttpServer& server) { server_ = &server; }

  void requested(ConnectionId connection, HttpRequest&& request) override;
  void left(ConnectionId connection) override;
  void stopping() override;  // work under way ends at once
  HttpResponse refusal(int status, const std::string& why) override;
  std::optional<ServerTime> next_wake() const override;
  void wake() override;

 private:
  HttpResponse answer_now(const HttpRequest& request) const;
  void run(ConnectionId connection, const HttpRequest& request);
  bool submit(ConnectionId connection, RunRequest asked);
  void send_result(ConnectionId connection, bool events, const std::string& result);

  struct Asked {
    std::string question;  // by which its answer is kept
    bool events = false;   // whether the client wants them
  };

  Library library_;
  PageSettings settings_;
  std::string facts_;  // made once
  HttpServer* server_ = nullptr;
  std::map<ConnectionId, Asked> asked_;  // work under way
  KeptAnswers kept_;
  WorkPool pool_;
};

}  // namespace foretoken
