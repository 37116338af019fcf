#include "serving/engine/engine_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/model_spec.h"
#include "library/library.h"

namespace foretoken::engine_builder_test {

EngineSpec spec_of(const Library& library, const char* model) {
  const Device device = library.hardware().device("h100_sxm");
  return {.model = open_model(library, {.model = model}, device), .device = device};
}

TEST(EngineBuilder, engines_of_one_builder_accept_their_own_drafts) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  EngineSpec spec = spec_of(library, "Llama-3.1-8B");
  const auto accepted = [&](double rate) {
    spec.speculation = SpeculativeConfig{
        .method = &draft_method("ngram"), .num_speculative_tokens = 3, .acceptance = Acceptance::constant(rate, 3)};
    return builder.build(spec).config.options.speculation.acceptance.expected_tokens(3);
  };
  EXPECT_DOUBLE_EQ(accepted(0.5), Acceptance::constant(0.5, 3).expected_tokens(3));
  EXPECT_DOUBLE_EQ(accepted(0.8), Acceptance::constant(0.8, 3).expected_tokens(3));
}

TEST(EngineBuilder, experts_over_context_ranks_are_refused) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  EngineSpec spec = spec_of(library, "Qwen3-30B-A3B");
  spec.plan = {.expert = 2, .context = 2};
  EXPECT_THROW(builder.build(spec), InputError);
}

}  // namespace foretoken::engine_builder_test
