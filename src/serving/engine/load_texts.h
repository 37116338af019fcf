// What the texts of a load mean for an engine.
#pragma once

#include "serving/engine/engine_spec.h"

namespace foretoken {

// Drafts whose acceptance is only the method's usual one are accepted as often as over such texts (LoadSpec).
void suit_texts(EngineSpec& engine, PromptTexts texts);

}  // namespace foretoken
