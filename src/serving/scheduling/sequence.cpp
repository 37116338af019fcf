#include "serving/scheduling/sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace foretoken {

void Sequence::begin(Request&& new_request) {
  request = std::move(new_request);
  record = {.id = request.id,
            .priority = request.priority,
            .input_tokens = request.input_tokens,
            .output_tokens = request.output_tokens,
            .arrival = request.arrival,
            .scheduled = -1,
            .thinking_tokens = request.thinking_tokens,
            .shortened = request.shortened};
  promised = produced = computed = blocks = sent = 0;
  prompt_end = request.input_tokens;
  // No run has steps for more.
  to_promise = static_cast<int32_t>(std::min<int64_t>(request.output_tokens, std::numeric_limits<int32_t>::max()));
  plain = request.adapter < 0 && request.thinking_tokens == 0;
  steps_in_flight = 0;
  latest_start = end_of_time;
  running = watched = cancelled = spare = outside = expected = false;
  rank = 0;
  block_hashes.clear();
  content_rows = 1;
  contents.clear();
  next_content_end = std::numeric_limits<int64_t>::max();
  former = {};
}

void Sequence::restart() {
  computed = 0;
  prompt_end = known_tokens();
  running = false;
  ++record.preemptions;
}

void Batch::add_any(Sequence& sequence, int64_t new_tokens, const Drafts& drafts) {
  ensure(new_tokens > 0 && new_tokens <= sequence.tokens_left(), "a step computes tokens that are known");
  const bool decodes = sequence.computed >= sequence.prompt_end;
  const int64_t context = sequence.computed;
  ensure(decodes || drafts.verified == 0, "only decodes verify drafts");
  sequence.computed += new_tokens;
  ++sequence.steps_in_flight;
  int64_t yields = sequence.tokens_left() == 0 ? 1 : 0;
  if (decodes) {  // accepted drafts are computed with it
    yields = std::min(1 + drafts.accepted, sequence.request.output_tokens - sequence.promised);
    sequence.computed += yields - 1;
  }
  sequence.promised += yields;
  ends_sequence_ = ends_sequence_ || sequence.all_promised();
  BatchEntry& entry = new_entry();
  entry.sequence = &sequence;
  entry.new_tokens = new_tokens;
  entry.context_tokens = context;
  entry.yields = yields;
  entry.decodes = decodes;
  entry.goes_on = false;
  entry.drafts = drafts;
  changing_.push_back(static_cast<uint32_t>(filled_ - 1));
  if (decodes) {
    ++decodes_;
    drafted_ += drafts.verified;
    accepted_ += yields - 1;
    decode_context_ += context;
    longest_decode_ = std::max(longest_decode_, context);
  } else {
    prompts_.push_back(
        {.new_tokens = new_tokens, .context_tokens = context, .yields_token = yields > 0 && !sequence.request.pooled});
    add_images(sequence.request, context, context + new_tokens);
    prefill_tokens_ += new_tokens;
    ++prompt_count_;
    prompt_context_ += context;
  }
  if (const int32_t adapter = sequence.request.adapter; adapter >= 0) {
    adapter_tokens_ += new_tokens + drafts.verified;
    if (std::find(adapters_.begin(), adapters_.end(), adapter) == adapters_.end()) adapters_.push_back(adapter);
  }
}

// An image is encoded in the step that computes its first token.
void Batch::add_images(const Request& request, int64_t from, int64_t to) {
  for (const ImageInput& image : request.images) {
    if (image.first_token >= from && image.first_token < to) images_.push_back(image.patches);
  }
}

void Batch::add_padding(int64_t tokens, int64_t context) {
  prompts_.push_back({.new_tokens = tokens, .context_tokens = context, .yields_token = false});
}

void Batch::add_idle_decodes(int64_t count, int64_t context_each) {
  decodes_ += count;
  idle_decodes_ += count;
  decode_context_ += count * context_each;
  if (count > 0) longest_decode_ = std::max(longest_decode_, context_each);
}

void Batch::remove(Sequence& sequence) {
  const std::vector<BatchEntry> kept(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(filled_));
  clear();
  for (const BatchEntry& entry : kept) {
    Sequence& other = *entry.sequence;
    other.promised -= entry.yields;
    --other.steps_in_flight;
    other.computed -= entry.decodes ? entry.yields : entry.new_tokens;
    if (&other != &sequence) add(other, entry.new_tokens, entry.drafts);
  }
}

void Batch::repeat(int64_t count) {
  ensure(only_decodes() && drafted_ == 0, "only decodes repeat, and those that verify drafts do not");
  changing_.clear();
  for (size_t place = 0; place < filled_; ++place) {
    BatchEntry& entry = entries_[place];
    Sequence& sequence = *entry.sequence;
    entry.context_tokens += count;
    sequence.computed += count;
    sequence.promised += count;
    sequence.produced += count;
    ends_sequence_ = ends_sequence_ || sequence.all_promised();
    entry.goes_on = sequence.plain && !sequence.all_promised();
    if (!entry.goes_on) changing_.push_back(static_cast<uint32_t>(place));
  }
  decode_context_ += count * decodes_;
  longest_decode_ += count;
}

void Batch::clear() {
  filled_ = 0;
  changing_.clear();
  quiet_parts_.clear();
  prompts_.clear();
  adapters_.clear();
  images_.clear();
  decodes_ = idle_decodes_ = decode_context_ = longest_decode_ = drafted_ = accepted_ = prefill_tokens_ = 0;
  prompt_count_ = prompt_context_ = adapter_tokens_ = 0;
  ranks_ = 0;
  busiest_ = {};
  ends_sequence_ = false;
}

void Batch::join(const Batch& rank) {
  const auto tokens = [](const std::vector<PromptChunk>& prompts) {
    int64_t sum = 0;
    for (const PromptChunk& chunk : prompts) sum += chunk.new_tokens;
    return sum;
  };
  ensure(rank.adapters_.empty(), "ranks in lock step have no adapters");
  count_in(rank.step());
  if (tokens(rank.prompts_) > tokens(prompts_)) prompts_ = rank.prompts_;
  const auto patches = [](const std::vector<int64_t>& images) {
    return std::accumulate(images.begin(), images.end(), int64_t{0});
  };
  if (patches(rank.images_) > patches(images_)) images_ = rank.images_;
  for (const uint32_t place : rank.changing_) changing_.push_back(static_cast<uint32_t>(filled_) + place);
  for (const BatchEntry& entry : rank.entries()) new_entry() = entry;
  decodes_ += rank.decodes_;
  idle_decodes_ += rank.idle_decodes_;
  decode_context_ += rank.decode_context_;
  drafted_ += rank.drafted_;
  accepted_ += rank.accepted_;
  prefill_tokens_ += rank.prefill_tokens_;
  prompt_count_ += rank.prompt_count_;
  prompt_context_ += rank.prompt_context_;
  ends_sequence_ = ends_sequence_ || rank.ends_sequence_;
}

void Batch::join(const std::shared_ptr<QuietDecodes>& rank) {
  StepBatch one = rank->step;
  one.decode_context_tokens += rank->chosen * one.decodes;
  one.longest_decode_context += rank->chosen;
  count_in(one);
  quiet_parts_.push_back({.place = filled_, .decodes = rank});
  decodes_ += one.decodes;
  decode_context_ += one.decode_context_tokens;
}

void Batch::count_in(const StepBatch& rank) {
  ++ranks_;
  busiest_.decodes = std::max(busiest_.decodes, rank.decodes);
  busiest_.decode_context_tokens = std::max(busiest_.decode_context_tokens, rank.decode_context_tokens);
  busiest_.longest_decode_context = std::max(busiest_.longest_decode_context, rank.longest_decode_context);
  busiest_.drafted_tokens = std::max(busiest_.drafted_tokens, rank.drafted_tokens);
  busiest_.tokens_of_all_ranks += rank.new_tokens();
}

StepBatch Batch::step() const {
  if (ranks_ > 0) {
    StepBatch busiest = busiest_;
    busiest.prompts = prompts_;
    busiest.images = images_;
    return busiest;
  }
  return {.decodes = decodes_,
          .decode_context_tokens = decode_context_,
          .longest_decode_context = longest_decode_,
          .drafted_tokens = drafted_,
          .adapters = static_cast<int64_t>(adapters_.size()),
          .adapter_tokens = adapter_tokens_,
          .prompts = prompts_,
          .images = images_};
}

}  // namespace foretoken
