// The native half of `import foretoken`: answers a question. What flags and results look like in Python is said in
// package/foretoken beside this file.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "app/cli/engine_steps.h"
#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/question.h"
#include "base/error.h"
#include "base/text.h"

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
template <typename Result>
Result in_own_thread(std::function<Result(const Library&)> work, const std::string& program) {
  std::packaged_task<Result()> task([work = std::move(work), program] { return work(Library::open(program)); });
  std::future<Result> reply = task.get_future();
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
  const Reply reply = in_own_thread<Reply>(work, program);
  return py::make_tuple(reply.text, reply.json, reply.exit_status, reply.command);
}

py::tuple ask_spec(const py::dict& spec, const std::string& program) {
  const auto work = [spec = to_json(spec)](const Library& library) {
    return reply_to(Question(spec, "question"), library);
  };
  const Reply reply = in_own_thread<Reply>(work, program);
  return py::make_tuple(reply.text, reply.json, reply.exit_status, reply.command);
}

std::string help_text(std::vector<std::string> words, const std::string& program) {
  Question::check_command(words);  // the parser would print the help of the command above a word that is misspelt
  words.emplace_back("--help-all");
  const auto work = [words = std::move(words)](const Library& library) {
    return Reply{.text = answer_command(words, library).text};
  };
  return in_own_thread<Reply>(work, program).text;
}

std::vector<std::string> command_words(const std::vector<std::string>& words, const py::dict& fields) {
  return Question(words, to_json(fields)).words();
}

std::vector<std::pair<std::string, std::string>> commands() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CommandKind& kind : all_commands()) all.emplace_back(kind.name, kind.summary);
  return all;
}

// Rows of five numbers: decodes, mean tokens in their cache, prompts, new tokens of each and its tokens in the cache.
constexpr py::ssize_t batch_columns = 5;

class StepPredictor {
 public:
  StepPredictor(const py::dict& fields, const std::string& program) {
    const auto open = [fields = to_json(fields)](const Library& library) {
      return std::make_shared<EngineSteps>(fields, "StepPredictor", library);
    };
    steps_ = in_own_thread<std::shared_ptr<EngineSteps>>(open, program);
  }

  // Into `seconds`, `low` and `high`, a number for each row.
  void predict(const py::buffer& rows, const py::buffer& seconds, const py::buffer& low, const py::buffer& high) {
    const py::buffer_info in = numbers(rows, false);
    const py::ssize_t count = in.size / batch_columns;
    double* out[3];
    const py::buffer* outs[3] = {&seconds, &low, &high};
    for (int i = 0; i < 3; ++i) {
      const py::buffer_info info = numbers(*outs[i], true);
      if (info.size != count) throw py::value_error("expected room for one number per row");
      out[i] = static_cast<double*>(info.ptr);
    }
    const double* row = static_cast<const double*>(in.ptr);
    const py::gil_scoped_release others_run;
    const std::lock_guard one_at_a_time(mutex_);
    std::vector<PromptChunk> prompts;
    for (py::ssize_t i = 0; i < count; ++i, row += batch_columns) {
      const Estimate time = steps_->seconds(batch_of(row, i, prompts));
      out[0][i] = time.value;
      out[1][i] = time.low;
      out[2][i] = time.high;
    }
  }

  // As it is: the tokens in the cache of each decode, and new tokens, cached tokens and whether it ends of each prompt.
  py::tuple predict_batch(const std::vector<int64_t>& decodes,
                          const std::vector<std::tuple<int64_t, int64_t, bool>>& prompts) {
    std::vector<PromptChunk> chunks;
    chunks.reserve(prompts.size());
    for (const auto& [new_tokens, context_tokens, ends] : prompts) chunks.push_back({new_tokens, context_tokens, ends});
    StepBatch batch{.decodes = static_cast<int64_t>(decodes.size()), .prompts = chunks};
    for (const int64_t context : decodes) {
      if (context < 0 || context > most_step_tokens) {  // before they are summed
        throw InputError({.source = "decodes",
                          .value = std::to_string(context),
                          .expected = fmt::format("0 to {} tokens", most_step_tokens)});
      }
      batch.decode_context_tokens += context;
      batch.longest_decode_context = std::max(batch.longest_decode_context, context);
    }
    Estimate time;
    {
      const py::gil_scoped_release others_run;  // before the lock: another thread may hold it for long
      const std::lock_guard one_at_a_time(mutex_);
      time = steps_->seconds(batch);
    }
    return py::make_tuple(time.value, time.low, time.high, std::string(confidence_name(time.kind)));
  }

  py::dict limits() const {
    const SchedulerOptions& options = steps_->engine().config.options;
    py::dict result;
    result["max_num_seqs"] = options.max_num_seqs;
    result["max_num_batched_tokens"] = options.max_num_batched_tokens;
    result["block_size"] = options.block_size;
    result["num_gpu_blocks"] = options.num_gpu_blocks;
    return result;
  }

 private:
  static py::buffer_info numbers(const py::buffer& buffer, bool writable) {
    py::buffer_info info = buffer.request(writable);
    const bool contiguous = info.ndim == 0 || PyBuffer_IsContiguous(info.view(), 'C');
    if (info.format != py::format_descriptor<double>::format() || !contiguous) {
      throw py::type_error("expected a contiguous buffer of float64");
    }
    return info;
  }

  static int64_t whole(double value, const char* column, py::ssize_t row, int64_t most) {
    if (value >= 0 && value <= static_cast<double>(most)) return std::llround(value);
    throw InputError({.source = fmt::format("row {}", row),
                      .path = column,
                      .value = number_text(value),
                      .expected = fmt::format("0 to {}", most)});
  }

  static StepBatch batch_of(const double* row, py::ssize_t i, std::vector<PromptChunk>& prompts) {
    const int64_t decodes = whole(row[0], "decodes", i, most_step_sequences);
    const double context = static_cast<double>(whole(row[1], "decode_context", i, most_step_tokens));
    const int64_t count = whole(row[2], "prompts", i, most_prompts);
    PromptChunk prompt{.new_tokens = 0, .context_tokens = 0};
    if (count > 0) {
      prompt.new_tokens = whole(row[3], "prompt_tokens", i, most_step_tokens);
      prompt.context_tokens = whole(row[4], "prompt_context", i, most_step_tokens);
    }
    prompts.assign(static_cast<size_t>(count), prompt);
    return {.decodes = decodes,
            .decode_context_tokens = std::llround(context * static_cast<double>(decodes)),
            .longest_decode_context = decodes > 0 ? std::llround(context) : 0,
            .prompts = prompts};
  }

  static constexpr int64_t most_prompts = 100'000;
  std::mutex mutex_;
  std::shared_ptr<EngineSteps> steps_;
};

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
  using foretoken::StepPredictor;
  py::class_<StepPredictor>(module, "StepPredictor", "Times of an engine's steps.")
      .def(py::init<const py::dict&, const std::string&>(), py::arg("fields"), py::arg("program"))
      .def("predict", &StepPredictor::predict, py::arg("rows"), py::arg("seconds"), py::arg("low"), py::arg("high"))
      .def("predict_batch", &StepPredictor::predict_batch, py::arg("decodes"), py::arg("prompts"))
      .def("limits", &StepPredictor::limits);
  module.def("help", &foretoken::help_text, py::arg("words"), py::arg("program"), "What --help-all prints.");
}
