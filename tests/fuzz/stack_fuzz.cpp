// Any bytes are either a stack that lowers a layer into launches with sane counts, or an InputError.
#include <string>

#include "base/error.h"
#include "compose/lowering.h"
#include "compose/stack.h"
#include "fuzz.h"

namespace {

using namespace foretoken;

std::vector<Operator> layer() {
  return {{.name = "input_norm", .count = 2, .shape = NormShape{.rows = 8, .width = 64}},
          {.name = "qkv_proj", .count = 2, .shape = GemmShape{.m = 8, .n = 96, .k = 64}},
          {.name = "rope", .count = 2, .shape = RopeShape{.tokens = 8}},
          {.name = "attention", .count = 2, .shape = AttentionShape{.batch = 2, .heads = 4, .kv_heads = 2}},
          {.name = "activation", .count = 2, .shape = ActivationShape{.rows = 8, .width = 128}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Stack stack = parse_stack(as_text(data, size), "input");
    promise(!stack.padded_tokens(1) || *stack.padded_tokens(1) >= 1, "a captured size holds a token");
    const std::vector<Operator> operators = layer();
    for (const Launch& launch : lower(stack, operators, {.phase = StepPhase::decode, .model = "llama"})) {
      promise(launch.count >= 1 && launch.call < operators.size(), "a launch is of an operator, at least once");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
