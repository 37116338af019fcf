#include "serving/engine/load_texts.h"

namespace foretoken {

void suit_texts(EngineSpec& engine, PromptTexts texts) {
  if (engine.speculation && engine.speculation->acceptance_is_usual) engine.speculation->assume_usual(texts);
}

}  // namespace foretoken
