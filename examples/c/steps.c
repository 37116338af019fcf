/* How long a decode step of Llama-3.1-8B takes on an H100 as the batch grows.
 *   cc examples/c/steps.c -lforetoken_steps -o steps && ./steps */
#include <foretoken/steps.h>
#include <stdio.h>

int main(void) {
  char message[1000];
  foretoken_engine* engine =
      foretoken_open_engine("{\"model\": \"Llama-3.1-8B\", \"device\": \"h100_sxm\", \"engine\": \"vllm\"}", NULL,
                            message, sizeof message);
  if (engine == NULL) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  printf("batch  ms a step  (90%% interval)\n");
  for (int64_t decodes = 1; decodes <= 256; decodes *= 4) {
    const foretoken_batch batch = {
        .decodes = decodes, .decode_context_tokens = 2000 * decodes, .longest_decode_context = 2000};
    double seconds, low, high;
    if (foretoken_step_seconds(engine, &batch, 1, &seconds, &low, &high) != 0) {
      fprintf(stderr, "%s\n", foretoken_error(engine));
      foretoken_close_engine(engine);
      return 1;
    }
    printf("%5d  %9.2f  (%.2f to %.2f)\n", (int)decodes, 1e3 * seconds, 1e3 * low, 1e3 * high);
  }
  foretoken_close_engine(engine);
  return 0;
}
