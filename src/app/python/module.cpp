// The native half of `import foretoken`: answers a question. What flags and results look like in Python is said in
// package/foretoken beside this file.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "app/cli/command_line.h"
#include "app/cli/question.h"
#include "base/error.h"

namespace foretoken {
namespace {

namespace py = pybind11;

struct Reply {
  std::string text, json;
  int exit_status = 0;
  std::string command = {};  // the same question for a shell
};

// Of dictionaries, lists, texts, numbers, True, False and None.
Json to_json(const py::handle& value) {
  if (value.is_none()) return {};
  if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value);
  if (py::isinstance<py::int_>(value)) return py::cast<int64_t>(value);
  if (py::isinstance<py::float_>(value)) return py::cast<double>(value);
  if (py::isinstance<py::str>(value)) return py::cast<std::string>(value);
  if (py::isinstance<py::list>(value)) {
    Json list = Json::array();
    for (const py::handle& item : value) list.push(to_json(item));
    return list;
  }
  Json object = Json::object();
  for (const auto& [name, item] : py::cast<py::dict>(value)) object.set(py::cast<std::string>(name), to_json(item));
  return object;
}

// What a command that was given up still uses is not taken apart under it.
void leave_at_once(int status, void* /*unused*/) {
  std::fflush(nullptr);
  _exit(status);
}

// Works on a thread of its own, so that the calling one hears Ctrl-C. Commands cannot be stopped half-way: one that was
// interrupted goes on unheard until it ends, or the interpreter does. `program`: a file near the library of facts.
Reply in_own_thread(std::function<Reply(const Library&)> work, const std::string& program) {
  std::packaged_task<Reply()> task([work = std::move(work), program] { return work(Library::open(program)); });
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

Reply reply_to(const Question& question, const Library& library) {
  const Answer answer = question.answer(library);
  return {
      .text = answer.text, .json = answer.json.dump(0), .exit_status = answer.exit_status, .command = question.line()};
}

py::tuple ask(std::vector<std::string> words, const py::dict& fields, const std::string& program) {
  const auto work = [words = std::move(words), fields = to_json(fields)](const Library& library) {
    return reply_to(Question(words, fields), library);
  };
  const Reply reply = in_own_thread(work, program);
  return py::make_tuple(reply.text, reply.json, reply.exit_status, reply.command);
}

py::tuple ask_spec(const py::dict& spec, const std::string& program) {
  const auto work = [spec = to_json(spec)](const Library& library) {
    return reply_to(Question(spec, "question"), library);
  };
  const Reply reply = in_own_thread(work, program);
  return py::make_tuple(reply.text, reply.json, reply.exit_status, reply.command);
}

std::string help_text(std::vector<std::string> words, const std::string& program) {
  words.emplace_back("--help");
  const auto work = [words = std::move(words)](const Library& library) {
    return Reply{.text = answer_command(words, library).text};
  };
  return in_own_thread(work, program).text;
}

std::vector<std::string> command_words(const std::vector<std::string>& words, const py::dict& fields) {
  return Question(words, to_json(fields)).words();
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
  module.def("ask", &foretoken::ask, py::arg("words"), py::arg("fields"), py::arg("program"),
             "Text, JSON and exit status of a command's answer, and its line for a shell.");
  module.def("ask_spec", &foretoken::ask_spec, py::arg("spec"), py::arg("program"), "The same for a whole question.");
  module.def("command_words", &foretoken::command_words, py::arg("words"), py::arg("fields"),
             "The words of the line for a shell.");
  module.def("help", &foretoken::help_text, py::arg("words"), py::arg("program"), "What --help prints.");
}
