#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/http/server.h"
#include "app/page/page_service.h"
#include "app/page/run_request.h"

namespace foretoken {
namespace {

// In the usual browser of a desktop, where there is one.
void open_browser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  const pid_t child = fork();
  if (child != 0) return;
  execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

class UiCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("--host", server_.host,
                 "Address to listen on; any address other than this machine's own lets others in");
    options.integer("--port", port_, {.least = 0, .most = 65'535}, "Port to listen on; 0 = any free port");
    options.list("--allow-host", settings_.further_hosts,
                 "Host names, besides addresses and localhost, that browsers may use to reach the page");
    options.flag("--open", open_, "Open the page in the browser of this desktop [on]");
    options.integer("--threads", threads_, {.least = 1, .most = 256}, "Number of questions answered at the same time");
    declare_calibration(options);
    options.footer(
        "Serves the page until SIGINT or SIGTERM (Ctrl-C). It never reads or writes a file named by a "
        "browser.\nExamples:\n  foretoken ui\n  foretoken ui --port 9000 --no-open");
  }

  Answer run(const Library& library) const override {
    PageSettings settings = settings_;
    settings.pool.threads = static_cast<size_t>(threads_);
    HttpServerSettings server_settings = server_;
    server_settings.port = static_cast<int>(port_);
    server_settings.max_connections = 128;  // each with a body: 1 GiB
    server_settings.limits.max_body_bytes = most_body_bytes;
    server_settings.max_pending_bytes = size_t{256} << 20;  // a trace of a long run
    server_settings.grace = std::chrono::milliseconds(2000);
    server_settings.stop_at_signals = true;

    block_stop_signals();
    PageService service(library, settings);
    HttpServer server(server_settings, service);
    service.answer_through(server);
    const std::string address = fmt::format("http://{}/", host_and_port(server_.host, server.port()));
    std::cerr << fmt::format("foretoken at {} (Ctrl-C ends it)\n", address) << std::flush;
    if (open_) open_browser(address);
    server.run();
    return {.text = "", .json = Json::object({{"address", address}})};
  }

 private:
  HttpServerSettings server_;
  PageSettings settings_;
  int64_t port_ = 8080, threads_ = 2;
  bool open_ = true;
};

}  // namespace

std::unique_ptr<Command> make_ui() {
  return std::make_unique<UiCommand>();
}

}  // namespace foretoken
