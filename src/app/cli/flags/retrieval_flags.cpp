#include "app/cli/flags/retrieval_flags.h"

#include <utility>

#include "base/error.h"
#include "serving/stages/encoder_passes.h"

namespace foretoken {
namespace {

constexpr const char* retrieval_heading = "Load: retrieval (--rag-passages)";
constexpr const char* encoder_stack = "torch-graph";  // what small encoders are usually served with

std::unique_ptr<StageTimes> text_encoder(const std::string& model, const std::string& device, int64_t sequences,
                                         int64_t tokens, const Library& library) {
  const EncoderMachine machine{.models = library.device_models(device, {}),
                               .stack = stacks_of(library).stack(encoder_stack)};
  return text_encoder_stage(std::make_shared<EncoderPasses>(library.models().model(model), machine), sequences, tokens);
}

}  // namespace

void RetrievalFlags::declare(Options& options) {
  constexpr Range<int64_t> counts{.least = 1, .most = 100'000};
  constexpr Range<double> milliseconds{.least = 0, .most = 1e6};
  options.heading(retrieval_heading);
  options.integer("--rag-passages", passages.per_request, {.least = 0, .most = most_passages_of_request},
                  "Passages retrieved for each request and added to its prompt; 0 = no retrieval");
  options.integer("--rag-passage-len", passages.tokens, {.least = 16, .most = most_passage_tokens},
                  "Passage length in tokens");
  options.integer("--rag-corpus", passages.corpus, {.least = 1, .most = most_passages},
                  "Number of different passages that can be retrieved");
  options.number("--rag-skew", passages.skew, {.least = 0, .most = 10},
                 "Zipf exponent of passage popularity; 0 = all passages are equally popular");
  options.flag("--rag-popular-first", passages.popular_first,
               "Order the passages of a prompt by popularity, so that more prompts share a prefix");
  options.text("--rag-embed-model", embed_model, "Encoder model that embeds the question");
  options.number("--rag-embed-ms", embed_ms, milliseconds,
                 "Time to embed one batch of questions, in milliseconds; replaces --rag-embed-model");
  options.integer("--rag-query-len", query_tokens, {.least = 1, .most = 100'000}, "Question length in tokens");
  options.number("--rag-vectors", search.vectors, {.least = 1, .most = 1e15}, "Number of vectors in the index");
  options.number("--rag-code-bytes", search.code_bytes, {.least = 0.125, .most = 1e5},
                 "Size of one quantized vector in bytes");
  options.number("--rag-probed-share", search.probed_share, {.least = 1e-12, .most = 1},
                 "Share of the index that each search reads (probed lists / all lists)");
  options.integer("--rag-shards", search.shards, counts, "Number of machines the index is divided over");
  options.integer("--rag-cores", search.cores, counts, "CPU cores of each search machine");
  options.number("--rag-search-ms", search_ms, milliseconds,
                 "Time of one batch of searches, in milliseconds; replaces the index model above");
  options.integer("--rag-search-batch", search_batch, counts, "Questions searched together in one batch");
  options.integer("--rag-search-servers", search_servers, counts, "Number of search servers");
  options.text("--rag-rerank-model", rerank_model, "Encoder model that reranks the candidate passages");
  options.number("--rag-rerank-ms", rerank_ms, milliseconds,
                 "Time to rerank one batch, in milliseconds; replaces --rag-rerank-model");
  options.integer("--rag-rerank-candidates", rerank_candidates, {.least = 0, .most = 100'000},
                  "Passages to rerank for each request; 0 = four times --rag-passages");
  options.text("--rag-device", encoder_device,
               "GPU that runs the encoders [same kind as the engine's, on GPUs of their own]");
  options.integer("--rag-encoder-servers", encoder_servers, counts, "Number of GPUs for each encoder");
  options.integer("--rag-encoder-batch", encoder_batch, counts, "Requests that an encoder processes in one batch");
}

void RetrievalFlags::check_use(const Options& options, bool conversations) const {
  if (!given()) {
    options.refuse_without("--rag-passages", {}, {retrieval_heading});
    return;
  }
  check_passages(passages);
  if (conversations) options.refuse({"--rag-passages"}, {}, "conversations");
  if (!embed_model.empty()) options.refuse({"--rag-embed-ms"}, {}, "--rag-embed-model");
  if (!rerank_model.empty()) options.refuse({"--rag-rerank-ms"}, {}, "--rag-rerank-model");
  if (rerank_model.empty()) options.refuse_without("--rag-rerank-model", {"--rag-rerank-candidates"});
  if (rerank_model.empty() && embed_model.empty()) options.refuse({"--rag-device"}, {}, "no encoder model");
  if (options.was_given("--rag-search-ms")) {
    options.refuse({"--rag-vectors", "--rag-code-bytes", "--rag-probed-share", "--rag-shards", "--rag-cores"}, {},
                   "--rag-search-ms");
  }
  if (search_ms == 0) options.refuse_without("--rag-search-ms", {"--rag-search-batch"});
  if (rerank_candidates > 0 && rerank_candidates < passages.per_request) {
    throw InputError({.source = "--rag-rerank-candidates",
                      .value = std::to_string(rerank_candidates),
                      .expected = "at least --rag-passages"});
  }
}

LoadMaker RetrievalFlags::changed(LoadMaker load) const {
  if (!given()) return load;
  return [load = std::move(load), passages = passages](uint64_t seed) {
    return with_passages(load(seed), passages, seed);
  };
}

void RetrievalFlags::add_stages(StageList& stages, const std::string& device, const Library& library) const {
  if (!given()) return;
  const std::string& encoder = encoder_device.empty() ? device : encoder_device;
  if (!embed_model.empty()) {
    stages.add("embed", encoder_servers, encoder_batch, text_encoder(embed_model, encoder, 1, query_tokens, library));
  } else if (embed_ms > 0) {
    stages.add("embed", encoder_servers, encoder_batch, fixed_stage(embed_ms * 1e-3));
  }
  if (search_ms > 0) {
    stages.add("search", search_servers, search_batch, fixed_stage(search_ms * 1e-3));
  } else {
    stages.add("search", search_servers * search.questions_at_once(), 1, search_stage(search));
  }
  if (!rerank_model.empty()) {
    constexpr int64_t usual_candidates = 4;  // for each passage kept
    const int64_t scored = rerank_candidates > 0 ? rerank_candidates : usual_candidates * passages.per_request;
    stages.add("rerank", encoder_servers, encoder_batch,
               text_encoder(rerank_model, encoder, scored, query_tokens + passages.tokens, library));
  } else if (rerank_ms > 0) {
    stages.add("rerank", encoder_servers, encoder_batch, fixed_stage(rerank_ms * 1e-3));
  }
}

}  // namespace foretoken
