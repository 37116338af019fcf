// The flags of retrieval in front of an engine (RAG).
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/load/passages.h"
#include "serving/serving_run.h"
#include "serving/stages/stage_list.h"
#include "serving/stages/vector_search.h"

namespace foretoken {

struct RetrievalFlags {
  PassageSettings passages;
  double embed_ms = 0, search_ms = 0, rerank_ms = 0;
  std::string embed_model, rerank_model, encoder_device;
  int64_t query_tokens = 32, rerank_candidates = 0;
  int64_t encoder_servers = 1, encoder_batch = 8, search_servers = 1, search_batch = 1;
  VectorSearch search;

  void declare(Options& options);
  // InputError for flags without their feature, or that do not go together. `conversations`: the load's.
  void check_use(const Options& options, bool conversations) const;
  bool given() const { return passages.per_request > 0; }
  LoadMaker changed(LoadMaker load) const;
  // Encoders run on `device` unless the flags name one.
  void add_stages(StageList& stages, const std::string& device, const Library& library) const;
};

}  // namespace foretoken
