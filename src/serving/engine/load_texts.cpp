#include "serving/engine/load_texts.h"

namespace foretoken {

void suit_texts(EngineSpec& engine, bool random_texts) {
  if (random_texts && engine.speculation && engine.speculation->acceptance_is_usual) {
    engine.speculation->assume_usual(random_texts);
  }
}

}  // namespace foretoken
