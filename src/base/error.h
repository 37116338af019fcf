// Two kinds of failure: the user's input is wrong (InputError), or we are wrong (ensure).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace foretoken {

// What is wrong with an input, in the parts a person needs to mend it. Empty parts are left out of the message.
// Sentences put the names of fields in braces: "at most {max_model_len}". app/ writes in their place what the user
// knows them by, a flag or a field.
struct InputProblem {
  std::string source;      // file name
  std::string field;       // or the field of the question (`foretoken schema`): max_model_len
  int line = 0;            // 1-based line in the file; 0 = not known
  std::string path;        // where inside the file: `memory.bandwidth`, `row 12, column m`
  std::string value;       // what stands there
  std::string expected;    // what should stand there
  std::string suggestion;  // nearest valid name or value
};

// Thrown by the library for wrong input; only app/ catches it (exit status 2).
class InputError : public std::runtime_error {
 public:
  explicit InputError(InputProblem problem);
  const InputProblem& problem() const { return problem_; }
  // what() as part of an answer: what users wrote is still marked (field_braces.h).
  std::string sentence() const;

 private:
  InputProblem problem_;
};

// Thrown by ensure(): a law of our own does not hold. app/ reports it as a defect (exit status 1).
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

// States an invariant; stays on in release builds.
void ensure(bool condition, const char* why_this_must_hold);

// The text with every {field} in it as `name` says; what users wrote keeps its mark (field_braces.h).
std::string with_field_names(std::string_view text, const std::function<std::string(std::string_view field)>& name);

// The candidate that was likely meant: one that contains `typed`, else one a few edits away; case does not matter.
std::optional<std::string> nearest_name(std::string_view typed, std::span<const std::string> candidates);

// A value for a message: control characters and broken UTF-8 escaped, cut after max_length bytes.
std::string printable(std::string_view text, size_t max_length = 60);

}  // namespace foretoken
