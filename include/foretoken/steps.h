/* Times of an engine's steps, for simulators in C or in any language that calls C. The library is libforetoken_steps.
 *
 *   char message[1000];
 *   foretoken_engine* engine = foretoken_open_engine(
 *       "{\"model\": \"Llama-3.1-8B\", \"device\": \"h100_sxm\", \"engine\": \"vllm\"}", NULL, message, sizeof message);
 *   foretoken_batch batch = {.decodes = 64, .decode_context_tokens = 64 * 2000, .longest_decode_context = 2000};
 *   double seconds, low, high;
 *   if (engine == NULL || foretoken_step_seconds(engine, &batch, 1, &seconds, &low, &high) != 0) ...
 *   foretoken_close_engine(engine);
 *
 * An engine is used by one thread at a time; several engines may be used at once. Nothing here prints or exits. */
#ifndef FORETOKEN_STEPS_H
#define FORETOKEN_STEPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretoken_engine foretoken_engine;

typedef struct foretoken_prompt {
  int64_t new_tokens;     /* that go in in this step */
  int64_t context_tokens; /* of the prompt, in the cache before it */
  int32_t continues;      /* not 0: more of the prompt is to come, so that no token is sampled */
} foretoken_prompt;

/* What runs in one step. */
typedef struct foretoken_batch {
  int64_t decodes;                /* sequences with one new token */
  int64_t decode_context_tokens;  /* in the cache of all of them together, before the step */
  int64_t longest_decode_context; /* of the longest of them */
  const foretoken_prompt* prompts;
  size_t prompt_count;
} foretoken_batch;

/* `question`: a JSON object with the fields of `foretoken endpoint` about model, device, layout, engine and deployment.
 * `library`: folder of models and devices; NULL = where FORETOKEN_LIBRARY points, or where foretoken was installed.
 * NULL where it is wrong or the engine would not start; `message` then says why, cut to `size` bytes with its end. */
foretoken_engine* foretoken_open_engine(const char* question, const char* library, char* message, size_t size);

/* Seconds of each of `count` batches, and its interval of 90% (`low` and `high` may be NULL). 0, or -1 where a batch
 * makes no sense: batches before it are answered, and foretoken_error says what is wrong. */
int foretoken_step_seconds(foretoken_engine* engine, const foretoken_batch* batches, size_t count, double* seconds,
                           double* low, double* high);

/* What was wrong with the last batch that was refused; empty = nothing. Valid until the next call with the engine. */
const char* foretoken_error(const foretoken_engine* engine);

/* NULL is allowed. */
void foretoken_close_engine(foretoken_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
