#include "serving/load/prompt_blocks.h"

#include "serving/load/synthetic.h"

namespace foretoken {

void describe_whole_prompt(Request& request) {
  constexpr int64_t longest_prompt = int64_t{1} << 24;  // blocks
  if (request.prefix_block_tokens == 0) request.prefix_block_tokens = made_up_block_tokens;
  const int64_t blocks = request.input_tokens / request.prefix_block_tokens;
  for (auto block = static_cast<int64_t>(request.prefix_blocks.size()); block < blocks; ++block) {
    request.prefix_blocks.push_back(-1 - request.id * longest_prompt - block);
  }
}

}  // namespace foretoken
