#include "postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr unsigned nobody = 65534;

// Where Debian keeps them, which is not on the PATH.
fs::path program(const std::string& name) {
  std::error_code failed;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", failed)) {
    if (fs::exists(version.path() / "bin" / name, failed)) return version.path() / "bin" / name;
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const fs::path file = fs::path(rest.substr(0, end)) / name;
    if (fs::exists(file, failed)) return file;
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return {};
}

pid_t run_unprivileged(const std::vector<std::string>& words, const fs::path& folder) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int log = open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  // PostgreSQL refuses to run as root.
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0)) _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string PostgresServer::missing() {
  return program("initdb").empty() || program("postgres").empty() ? "no PostgreSQL server here (package postgresql)"
                                                                  : "";
}

PostgresServer& PostgresServer::of_this_program() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() {
  std::string name = "/tmp/foretoken-postgres-XXXXXX";  // short: a socket's path has at most 107 characters
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = name;
  std::ofstream(folder_ / "password") << password << "\n";
  if (geteuid() == 0) {
    for (const fs::path& path : {folder_, folder_ / "password"}) {
      if (chown(path.c_str(), nobody, nobody) != 0) throw std::runtime_error("chown");
    }
  }
  int status = -1;
  const pid_t child =
      run_unprivileged({program("initdb"), "-D", folder_ / "data", "-U", "tester", "--pwfile", folder_ / "password",
                        "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"},
                       folder_);
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("initdb: " + text_of(folder_ / "log"));
  start();
}

PostgresServer::~PostgresServer() {
  stop();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void PostgresServer::start() {
  fs::remove(folder_ / "data" / "postmaster.pid");
  pid_ = run_unprivileged({program("postgres"), "-D", folder_ / "data", "-k", folder_, "-c", "listen_addresses=", "-c",
                           "fsync=off", "-c", "shared_buffers=16MB"},
                          folder_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (text_of(folder_ / "data" / "postmaster.pid").find("ready") == std::string::npos) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_ || std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("postgres: " + text_of(folder_ / "log"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void PostgresServer::stop() {
  if (pid_ == 0) return;
  kill(pid_, SIGQUIT);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

std::string PostgresServer::address_with(const std::string& secret, const std::string& schema) const {
  return "postgresql://tester:" + secret + "@/postgres?host=" + folder_.string() + "&options=-csearch_path%3D" + schema;
}

}  // namespace foretoken
