#include "serving/speculation/usual_acceptance.h"

#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "serving/test_support.h"

namespace foretoken::usual_acceptance_test {

TEST(UsualAcceptance, every_method_has_one_for_any_number_of_drafts) {
  for (const DraftMethod& method : draft_methods()) {
    double before = 1;
    for (const int64_t drafts : {1, 3, 7, 15, 40}) {
      const UnknownAcceptance usual = usual_acceptance(method, drafts);
      const double tokens = usual.value.expected_tokens(drafts);
      EXPECT_GE(tokens, before) << method.name << " " << drafts;
      EXPECT_LT(usual.low.expected_tokens(drafts), tokens) << method.name << " " << drafts;
      EXPECT_GT(usual.high.expected_tokens(drafts), tokens) << method.name << " " << drafts;
      before = tokens;
    }
  }
}

TEST(UsualAcceptance, random_texts_are_easier_for_layers_of_the_model_and_no_easier_for_other_drafters) {
  for (const char* name : {"mtp", "dspark"}) {
    const DraftMethod& method = draft_method(name);
    for (const int64_t drafts : {1, 3, 5}) {
      EXPECT_GT(usual_acceptance(method, drafts, PromptTexts::random).value.expected_tokens(drafts),
                usual_acceptance(method, drafts).value.expected_tokens(drafts))
          << name << " " << drafts;
    }
  }
  EXPECT_NEAR(usual_acceptance(draft_method("mtp"), 3, PromptTexts::random).value.expected_tokens(3), 3.46, 1e-6);
  for (const char* name : {"eagle3", "draft_model", "ngram"}) {
    EXPECT_EQ(usual_acceptance(draft_method(name), 3, PromptTexts::random).value.reached(),
              usual_acceptance(draft_method(name), 3).value.reached())
        << name;
  }
}

// The published lengths that ship: none of a source is far from its neighbors', and both kinds of texts are met.
TEST(UsualAcceptance, published_lengths_of_code_and_of_other_texts_are_met_and_held) {
  CsvReader csv{FORETOKEN_SOURCE_DIR "/data/serving/acceptance.csv"};
  struct Kind {
    double rows = 0, held = 0, difference = 0;
  };
  std::map<std::string, Kind> kinds;
  while (csv.next()) {
    const std::string method(csv.cell(csv.column("draft_method"))), texts(csv.cell(csv.column("texts")));
    const int64_t drafts = csv.integer(csv.column("draft_tokens"), {1, 100});
    const double length = csv.number(csv.column("mean_acceptance_length"), {1, 100});
    ASSERT_TRUE(texts == "code" || texts == "natural") << texts;
    const UnknownAcceptance usual =
        usual_acceptance(draft_method(method), drafts, texts == "code" ? PromptTexts::code : PromptTexts::natural);
    Kind& kind = kinds[method + " " + texts];
    ++kind.rows;
    kind.held += length >= usual.low.expected_tokens(drafts) && length <= usual.high.expected_tokens(drafts) ? 1 : 0;
    kind.difference += usual.value.expected_tokens(drafts) / length - 1;
  }
  double rows = 0, held = 0;
  for (const auto& [name, kind] : kinds) {
    rows += kind.rows;
    held += kind.held;
    if (kind.rows < 5) continue;
    EXPECT_NEAR(kind.difference / kind.rows, 0, 0.07) << name << " of " << kind.rows;
  }
  EXPECT_GT(rows, 150);
  EXPECT_GE(held, 0.85 * rows) << held << " of " << rows;
}

TEST(UsualAcceptance, a_measured_mean_of_a_run_leaves_requests_their_own_luck) {
  const Acceptance acceptance = acceptance_of_run(3.12, 3);
  EXPECT_NEAR(acceptance.expected_tokens(3), 3.12, 1e-9);
  EXPECT_NE(acceptance.accepted(3, 0.5, 0), acceptance.accepted(3, 0.5, 0.999));
}

TEST(UsualAcceptanceNeedsData, nine_in_ten_published_lengths_are_within_its_interval) {
  const auto data = measured_data();
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  CsvReader csv{*data / "serving" / "spec_decode_acceptance.csv"};
  int rows = 0, held = 0;
  while (csv.next()) {
    std::string method(csv.cell(csv.column("draft_method")));
    method = method.substr(0, method.find(' '));
    const int64_t drafts = csv.integer(csv.column("draft_tokens"), {1, 100});
    const double length = csv.number(csv.column("mean_acceptance_length"), {1, 100});
    const UnknownAcceptance usual = usual_acceptance(draft_method(method), drafts, PromptTexts::code);
    ++rows;
    held += length >= usual.low.expected_tokens(drafts) && length <= usual.high.expected_tokens(drafts) ? 1 : 0;
  }
  EXPECT_GT(rows, 100);
  EXPECT_GE(held, 0.85 * rows) << held << " of " << rows;
}

}  // namespace foretoken::usual_acceptance_test
