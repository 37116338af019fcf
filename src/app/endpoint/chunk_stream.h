// Streams of /v1/chat/completions and /v1/completions: a chunk for each step of a choice.
#pragma once

#include <memory>

#include "app/endpoint/answer_stream.h"

namespace foretoken {

std::unique_ptr<AnswerStream> make_chunk_stream(const AnswerHead& head);

}  // namespace foretoken
