// The memory of a serving engine for people and for programs.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "compose/serving_memory.h"

namespace foretoken {

// Sequences that someone wants to keep at once.
struct CacheDemand {
  int64_t sequences = 1;
  int64_t tokens_each = 1;
  int64_t step_tokens = 1;  // of them that one step brings in
};

// Of an engine that started with a shorter context than it was asked for; empty = with all of it.
std::string shorter_context_note(const ServingMemory& memory);

Json serving_memory_json(const ServingMemory& memory, const CacheDemand& demand);

// A table of parts, what the cache holds, whether the demand fits; if the engine would not start, why and what helps.
std::string serving_memory_text(const ServingMemory& memory, const CacheDemand& demand);

}  // namespace foretoken
