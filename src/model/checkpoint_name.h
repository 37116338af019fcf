// What a checkpoint's name says of its number format: "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/number_format.h"
#include "model/model.h"

namespace foretoken {

struct NameFormat {
  std::string text;               // as it is written: "FP8-dynamic"
  std::optional<Scheme> scheme;   // nothing: a format that linear layers have no scheme for (GGUF, W4A4, ...)
  std::string_view caveat = {};   // what the scheme leaves out of the stated format; empty = nothing
  bool states_blocks = false;     // "FP8-block"
  bool states_fp8_cache = false;  // "FP8-KV"
};

struct CheckpointName {
  std::string_view organization;     // empty = none given
  std::string_view model;            // the part after the organization, without its format
  std::optional<NameFormat> format;  // nothing = the name states none
};

// The parts look into `name`.
CheckpointName parse_checkpoint_name(std::string_view name);

// A name for comparison: lower case, and without words that change no shape (Instruct, chat, it, hf, Meta, ...).
// `dates`: four digits at the end count (Instruct-2507).
std::string comparable_name(std::string_view model, bool dates);

// Billions of parameters that a name states: 72 of "Qwen2.5-72B", 56 of "Mixtral-8x7B"; nothing where it states none.
std::optional<double> stated_billions(std::string_view model);

// Whether a word behind a model's name may stand for another model: a size, a version, or a word such as "mini", "VL".
bool changes_the_model(std::string_view word);

// Whether a word behind a model's name is one that tuned checkpoints of the same shapes carry: "SFT", "Preview", a
// date.
bool names_a_tuned_model(std::string_view word);

// The note of a model whose name, `checkpoint`, says something that nobody knows, "Banana": it is answered as `entry`,
// which may not be what was meant. Answers show notes that are such warnings before anything else.
std::string unknown_name_warning(std::string_view checkpoint, std::string_view unknown, std::string_view entry);
bool is_name_warning(std::string_view note);

// The model in the format that `name` states, with a note that says so. `publisher`: organization of the model's own
// checkpoint. InputError, which names what to use instead, for a format that has no scheme.
Model with_named_format(Model model, const CheckpointName& name, std::string_view publisher);

}  // namespace foretoken
