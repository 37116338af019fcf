// What launching training steps costs the host, against tiny layers that were timed on one (data/measured_training).
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::training_host_test {

struct Layers {
  const char* code;     // as the table says
  const char* options;  // as the table says
  const char* flags;
};

class TrainingHost : public CommandTest {
 protected:
  // Median of the processes that were timed, in milliseconds of one layer. Some were twice as fast as others.
  static double measured_ms(const Layers& one) {
    std::vector<double> found;
    CsvReader rows(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data/measured_training/h200_sxm_host.csv");
    while (rows.next()) {
      if (rows.cell(rows.column("code")) != one.code || rows.cell(rows.column("options")) != one.options) continue;
      found.push_back(rows.number(rows.column("layer_ms")));
    }
    EXPECT_EQ(found.size(), 7u) << "code that all processes timed: " << one.code << " " << one.options;
    std::nth_element(found.begin(), found.begin() + static_cast<long>(found.size() / 2), found.end());
    return found[found.size() / 2];
  }

  double step_ms(int layers, const Layers& one) const {
    write("tiny.json",
          R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": )" +
              std::to_string(layers) +
              R"(, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512,
                              "max_position_embeddings": 4096, "tie_word_embeddings": true})");
    const Outcome run = run_foretoken("train --model " + path("tiny.json") +
                                      " --device h200_sxm --devices 1 --seq-length 64 --json " + one.flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return 1e3 * parse_json(run.out, "train").find("seconds")->find("value")->number();
  }
};

TEST_F(TrainingHost, needs_for_tiny_layers_what_it_was_measured_to) {
  constexpr Layers layers[] = {
      {"Llama", "", "--stack transformers --optimizer adam-bf16-weights"},
      {"Llama", "lora_rank=16 lora_on=all", "--stack transformers --lora-rank 16 --optimizer adam-bf16-weights"},
      {"Llama", "lora_rank=16 lora_on=all checkpointing=1",
       "--stack transformers --lora-rank 16 --optimizer adam-bf16-weights --recompute-granularity full"},
      {"decoder", "", "--stack torchtitan-eager --optimizer adam-bf16-weights"},
      {"decoder", "precision=bf16-mixed", "--stack nanogpt-eager"},
  };
  for (const Layers& one : layers) {
    const double predicted = (step_ms(24, one) - step_ms(8, one)) / 16, measured = measured_ms(one);
    EXPECT_GT(predicted, measured / 1.45) << one.code << " " << one.options;
    EXPECT_LT(predicted, measured * 1.45) << one.code << " " << one.options;
  }
}

}  // namespace foretoken::training_host_test
