// What comes into a serving run and what comes out of it, request by request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/simulated_time.h"

namespace foretoken {

// A picture in a prompt.
struct ImageInput {
  int64_t patches = 0;      // that its encoder reads
  int64_t tokens = 0;       // of the prompt that stand for it
  int64_t first_token = 0;  // where they begin
};

struct Request {
  int64_t id = 0;
  Picoseconds arrival = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t session = -1;             // requests of one conversation; -1 = none
  int32_t priority = 0;             // lower goes first, where the policy looks at it
  int32_t region = 0;               // where it comes from (fleet/regions.h)
  int32_t adapter = -1;             // that its tokens go through (lora/); -1 = the model alone
  int32_t model = 0;                // which of the models that share a device (colocation/)
  int32_t prefix_block_tokens = 0;  // tokens that one of `prefix_blocks` stands for
  // One number per block of the prompt: two prompts share their first k blocks exactly when their first k numbers are
  // equal. Empty = shares nothing. Numbers beyond the prompt name blocks of the output, for a conversation whose next
  // prompt holds it.
  std::vector<int64_t> prefix_blocks;
  int64_t thinking_tokens = 0;     // of the output, before the answer
  bool pooled = false;             // an embedding or a score: its output stands for the answer, and nothing is sampled
  bool follows = false;            // goes where the request before it went
  bool shortened = false;          // its output was longer than the model's length leaves room for
  std::vector<ImageInput> images;  // not encoded yet
};

// Settings given by priority, most urgent first, the last for all that follow: which of `count` is that of this one.
size_t place_by_priority(int32_t priority, size_t count);

// Told which requests are over: of closed loops and conversations, more may come.
class RequestEnds {
 public:
  virtual ~RequestEnds() = default;
  virtual void ended(int64_t /*id*/, Picoseconds /*when*/) {}
  // In place of `ended` for one that was never run.
  virtual void rejected(int64_t id, Picoseconds when) { ended(id, when); }
};

// Gives requests in order of arrival, one at a time: a trace of any length is never held whole.
class RequestSource : public RequestEnds {
 public:
  // When the next request arrives; nothing: none is known now. Never before an arrival that was already taken, nor
  // before the last `ended`. Asked again after every `next` and `ended`: what has not been taken may still be
  // overtaken.
  virtual std::optional<Picoseconds> next_arrival() = 0;

  // Takes that request. Only after `next_arrival` gave a time.
  virtual Request next() = 0;
};

enum class RequestOutcome : uint8_t { completed, rejected };

// Why a request was never run.
enum class Rejection : uint8_t {
  none,
  no_input,
  no_output,
  beyond_model_length,
  beyond_kv_cache,
  beyond_step,     // its prompt, where no prompt is cut
  too_many,        // admission: its replica has as many as it may (fleet/admission.h)
  predicted_late,  // admission: it would wait too long
  shed,            // it can no longer meet its TTFT goal
  lost             // its replica failed
};
inline constexpr size_t rejection_kinds = 10;
inline constexpr Rejection last_unservable = Rejection::beyond_step;  // those up to here no engine could serve
std::string_view rejection_text(Rejection why);                       // "no output tokens"; empty for none

struct RequestRecord {
  int64_t id = 0;
  RequestOutcome outcome = RequestOutcome::completed;
  Rejection rejection = Rejection::none;
  int32_t replica = 0;
  int32_t preemptions = 0;
  int32_t priority = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the prefix cache when first scheduled
  Picoseconds arrival = 0;
  Picoseconds queued = 0;     // the engine has read it
  Picoseconds scheduled = 0;  // its first step began
  Picoseconds first_token = 0;
  Picoseconds last_token = 0;
  int64_t thinking_tokens = 0;  // of the output
  Picoseconds answered = 0;     // the first token behind those; 0 = none came, or nothing was thought
  bool shortened = false;       // the output, to the model's length
  int64_t outputs = 1;          // that its tokens are of
  Picoseconds streaming = 0;    // of several outputs: from first to last token of each, added up

  // Of completed requests.
  Picoseconds ttft() const { return first_token - arrival; }
  Picoseconds e2el() const { return last_token - arrival; }
  // Mean gap between tokens of one output after its first, rounded, as clients work it out; 0 where there is none.
  Picoseconds tpot() const {
    const int64_t gaps = output_tokens - outputs;
    const Picoseconds time = outputs > 1 ? streaming : last_token - first_token;
    return gaps > 0 ? (time + gaps / 2) / gaps : 0;
  }
  bool has_gaps() const { return output_tokens > outputs; }
};

// Adapters that had to be brought in before a step.
struct AdapterLoads {
  int64_t from_host = 0, from_disk = 0;
  Picoseconds time = 0;
};

struct StepRecord {
  int32_t replica = 0;
  Picoseconds begin = 0;
  Picoseconds end = 0;
  int64_t repeats = 1;  // equal decode steps that were advanced at once; begin and end are of all of them, the tokens
                        // of one
  int64_t prefill_tokens = 0;
  int64_t prompts = 0;                // that they are of
  int64_t prompt_context_tokens = 0;  // in the cache of these together, before the step
  int64_t decode_tokens = 0;          // one for each decode
  int64_t idle_decodes = 0;           // beside them, of sequences that have ended (static batching): no token comes out
  int64_t decode_context_tokens = 0;  // in the cache of all these together, before the (first) step
  int64_t drafted_tokens = 0;         // that they verified
  int64_t accepted_tokens = 0;        // of these, that came out
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t kv_blocks_used = 0;   // of repeated steps: in the first of them
  int64_t kv_blocks_grown = 0;  // and so many more in the last
  int64_t adapters = 0;         // different ones that its tokens go through
  AdapterLoads adapter_loads;   // before its first kernel
};

// What one request did in a step, or in each of a run of equal ones.
struct RequestStep {
  int64_t request = 0;
  int64_t new_tokens = 0;      // that it computed
  int64_t context_tokens = 0;  // in the cache before; of a run before its first step
  bool decodes = false;        // else it computes its prompt, after a preemption its output so far too
  int64_t yields = 0;          // tokens that come out at the end of the step
  int64_t sent = 0;            // tokens that are sent then: more or none where pieces of answers hold several
  // From there until the client has them; of a run those of its first and of its last step.
  Picoseconds sending = 0, last_sending = 0;
};

class RunParts;

// Told what happens, for each replica in order of simulated time. Keeps what it needs; the simulation keeps nothing of
// the past.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void request_ended(const RequestRecord&) {}
  virtual void step_ran(const StepRecord&) {}
  // `count` gaps of this length between successive tokens of one request (inter-token latency). Tokens that come out of
  // one step together have none between them.
  virtual void token_gaps(Picoseconds /*gap*/, int64_t /*count*/) {}
  // Asked once for each request: true has `request_stepped` called for each of its steps, after `step_ran`. An observer
  // may hear of requests that others watch.
  virtual bool watches(int64_t /*request*/) const { return false; }
  virtual void request_stepped(const RequestStep&, const StepRecord&) {}
  // Its replica stopped: what came out counts for nothing, and it begins again or is rejected.
  virtual void request_interrupted(int64_t /*request*/) {}
  // A decode verified drafts; those accepted beyond its last token count too.
  virtual void drafts_verified(int64_t /*drafts*/, int64_t /*accepted*/) {}
  // Adds what it measures, where that cannot be combined with every run (run_parts.h).
  virtual void add_parts(RunParts& /*parts*/) const {}
};

// The same load each time it is called with the same seed.
using LoadMaker = std::function<std::unique_ptr<RequestSource>(uint64_t seed)>;

}  // namespace foretoken
