// The native half of `import foretoken`: answers a command line. What flags and results look like in Python is said in
// package/foretoken beside this file.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <thread>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "app/cli/command_line.h"
#include "base/error.h"

namespace foretoken {
namespace {

namespace py = pybind11;

struct Reply {
  std::string text, json;
  int exit_status = 0;
};

// What a command that was given up still uses is not taken apart under it.
void leave_at_once(int status, void* /*unused*/) {
  std::fflush(nullptr);
  _exit(status);
}

// Works on a thread of its own, so that the calling one hears Ctrl-C. Commands cannot be stopped half-way: one that was
// interrupted goes on unheard until it ends, or the interpreter does.
Reply answer(std::vector<std::string> arguments, const std::string& program) {
  std::packaged_task<Reply()> task([arguments = std::move(arguments), program] {
    const Answer answer = answer_command(arguments, Library(Library::find(program), program));
    return Reply{.text = answer.text, .json = answer.json.dump(0), .exit_status = answer.exit_status};
  });
  std::future<Reply> reply = task.get_future();
  const py::gil_scoped_release others_run;
  std::thread worker(std::move(task));
  while (reply.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const py::gil_scoped_acquire python;
    if (PyErr_CheckSignals() == 0) continue;
    worker.detach();
    on_exit(leave_at_once, nullptr);
    throw py::error_already_set();
  }
  worker.join();
  return reply.get();
}

std::vector<std::pair<std::string, std::string>> commands() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CommandKind& kind : all_commands()) all.emplace_back(kind.name, kind.summary);
  return all;
}

}  // namespace
}  // namespace foretoken

PYBIND11_MODULE(_foretoken, module) {
  namespace py = pybind11;
  module.doc() = "The native half of foretoken.";
  module.attr("version") = FORETOKEN_VERSION;
  py::register_exception<foretoken::InputError>(module, "InputError", PyExc_ValueError).attr("__module__") =
      "foretoken";
  module.def("commands", &foretoken::commands, "Names and summaries of all commands.");
  module.def(
      "answer",
      [](std::vector<std::string> arguments, const std::string& program) {
        const foretoken::Reply reply = foretoken::answer(std::move(arguments), program);
        return py::make_tuple(reply.text, reply.json, reply.exit_status);
      },
      py::arg("arguments"), py::arg("program"),
      "Text, JSON and exit status of a command line; `program` is a file near the library of facts.");
}
