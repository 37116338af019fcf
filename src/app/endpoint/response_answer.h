// Answers of POST /v1/responses: one document, or the events of a stream that ends with it.
#pragma once

#include <memory>

#include "app/endpoint/answer_stream.h"

namespace foretoken {

Json response_json(const AnswerHead& head, const AnsweredChoice& choice, const TokenUsage& usage);
std::unique_ptr<AnswerStream> make_response_stream(const AnswerHead& head);

}  // namespace foretoken
