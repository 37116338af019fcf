// The C API of include/foretoken/steps.h.
#include <foretoken/steps.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "app/cli/engine_steps.h"
#include "base/error.h"
#include "base/json.h"
#include "library/library.h"

struct foretoken_engine {
  foretoken::EngineSteps steps;
  std::string error = {};
  std::vector<foretoken::PromptChunk> prompts = {};
};

namespace {

constexpr const char* question_name = "question";

// The shared library's own file: models and devices are installed near it, whatever program calls.
std::filesystem::path own_file() {
  Dl_info info = {};
  const bool found = dladdr(reinterpret_cast<const void*>(&foretoken_open_engine), &info) != 0;
  return found ? info.dli_fname : "";
}

foretoken::Library opened(const char* folder) {
  return folder != nullptr ? foretoken::Library(folder, own_file()) : foretoken::Library::open(own_file());
}

void write_message(const char* text, char* message, size_t size) {
  if (message == nullptr || size == 0) return;
  const size_t length = std::min(std::strlen(text), size - 1);
  std::memcpy(message, text, length);
  message[length] = '\0';
}

}  // namespace

foretoken_engine* foretoken_open_engine(const char* question, const char* library, char* message, size_t size) {
  write_message("", message, size);
  try {
    if (question == nullptr)
      throw foretoken::InputError({.source = question_name, .value = "NULL", .expected = "JSON"});
    return new foretoken_engine{
        foretoken::EngineSteps(foretoken::parse_json(question, question_name), question_name, opened(library))};
  } catch (const std::exception& error) {
    write_message(error.what(), message, size);
    return nullptr;
  }
}

int foretoken_step_seconds(foretoken_engine* engine, const foretoken_batch* batches, size_t count, double* seconds,
                           double* low, double* high) {
  engine->error.clear();
  size_t i = 0;
  try {
    for (; i < count; ++i) {
      const foretoken_batch& batch = batches[i];
      engine->prompts.clear();
      for (size_t k = 0; k < batch.prompt_count; ++k) {
        const foretoken_prompt& prompt = batch.prompts[k];
        engine->prompts.push_back({.new_tokens = prompt.new_tokens,
                                   .context_tokens = prompt.context_tokens,
                                   .yields_token = prompt.continues == 0});
      }
      const foretoken::Estimate time = engine->steps.seconds({.decodes = batch.decodes,
                                                              .decode_context_tokens = batch.decode_context_tokens,
                                                              .longest_decode_context = batch.longest_decode_context,
                                                              .prompts = engine->prompts});
      seconds[i] = time.value;
      if (low != nullptr) low[i] = time.low;
      if (high != nullptr) high[i] = time.high;
    }
    return 0;
  } catch (const std::exception& error) {
    engine->error = "batch " + std::to_string(i) + ": " + error.what();
    return -1;
  }
}

const char* foretoken_error(const foretoken_engine* engine) {
  return engine->error.c_str();
}

void foretoken_close_engine(foretoken_engine* engine) {
  delete engine;
}
