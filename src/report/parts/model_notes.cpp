#include "report/parts/model_notes.h"

#include "model/checkpoint_name.h"
#include "report/parts/table.h"

namespace foretoken {

std::string model_warnings_text(std::span<const std::string> notes) {
  std::string text;
  for (const std::string& note : notes) {
    if (is_name_warning(note)) text += wrap_lines("warning: " + note + "\n", page_width(), 2);
  }
  return text.empty() ? text : text + "\n";
}

std::string notes_text(std::span<const std::string> notes) {
  std::string text;
  for (const std::string& note : notes) {
    if (!is_name_warning(note)) text += wrap_lines("note: " + note + "\n", page_width(), 2);
  }
  return text;
}

}  // namespace foretoken
