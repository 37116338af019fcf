// What one answer costs as a process of its own: CPU time (user and system) of `foretoken`, from exec to exit, with
// files in the page cache. `of_version` is the same over `foretoken --version`, which does nothing but start: compare
// that between machines.
#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_seconds(const std::string& arguments) {
  std::istringstream stream("foretoken " + arguments);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = posix_spawn(&child, FORETOKEN_PROGRAM, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  if (failure != 0 || wait4(child, &status, 0, &usage) != child || status != 0)
    throw std::runtime_error("`foretoken " + arguments + "` failed");
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

void process(benchmark::State& state, const std::string& arguments) {
  double sum = 0, of_version = 0;
  for (auto _ : state) {
    const double seconds = cpu_seconds(arguments);
    state.SetIterationTime(seconds);
    sum += seconds;
    of_version += cpu_seconds("--version");  // in turn, so that other work on the machine slows both alike
  }
  state.counters["of_version"] = sum / of_version;
}

constexpr int processes = 200;

#define FORETOKEN_PROCESS(name, arguments) \
  BENCHMARK_CAPTURE(process, name, arguments)->UseManualTime()->Iterations(processes)->Unit(benchmark::kMillisecond)

FORETOKEN_PROCESS(version, "--version");
FORETOKEN_PROCESS(decode, "step --model Llama-3.1-8B --device h100_sxm --batch 8 --context-len 2048");
FORETOKEN_PROCESS(decode_tp8, "step --model Llama-3.1-70B --device h100_sxm --batch 8 --context-len 2048 -tp 8");
FORETOKEN_PROCESS(prefill, "step --model Llama-3.1-8B --device h200_sxm --phase prefill --input-len 2048");
FORETOKEN_PROCESS(deepseek, "step --model DeepSeek-V3 --device b200_sxm --batch 8 --context-len 2048 -tp 8");
FORETOKEN_PROCESS(training,
                  "step --model Llama-3.1-8B --device h200_sxm --stack torch-graph --phase train --input-len 2048");
FORETOKEN_PROCESS(eager,
                  "step --model Llama-3.1-8B --device h200_sxm --stack hf-eager --phase prefill --input-len 2048");
FORETOKEN_PROCESS(roofline, "step --model Llama-3.1-8B --device h100_sxm --batch 8 --context-len 2048 --tier roofline");
FORETOKEN_PROCESS(demo, "demo");

}  // namespace

BENCHMARK_MAIN();
