// A request of the page, read and checked: a question to the program, and perhaps a device of the page's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/grammar/question.h"
#include "app/page/upload.h"
#include "library/library.h"

namespace foretoken {

struct RunRequest {
  std::vector<std::string> words;  // the command's: "plan", "serve"
  Json fields = Json::object();    // those of the page, with names of the library written out

  Question question() const { return Question(words, fields); }
  // The files that came with it, and the field that names them; none = nothing.
  struct Upload {
    std::string field;
    std::vector<UploadedFile> files;
    bool is_run = false;
  };
  std::optional<Upload> upload;
  // The question with its files at `place`.
  Question question_at(const std::string& place) const;
  std::string text() const;          // equal for equal requests, in whatever order their fields came
  std::string command_line() const;  // as a person would type it, with the page's own device in a file beside
};

// What a body may be at most; a body beyond any of it is refused.
inline constexpr size_t most_body_bytes = size_t{8} << 20;        // with files
inline constexpr size_t most_question_bytes = size_t{256} << 10;  // without
inline constexpr size_t longest_flag_value = 400;                 // bytes, of one line
inline constexpr size_t most_flag_values = 64;                    // of one field

// A question (question.h) such as {"command": "step", "model": "...", "batch": 64}, whose device may be the content of
// a device file; or {"command": "compare", "first": {...}, "second": {...}} of two such questions. InputError for
// anything but the commands, fields and values of page_flags.h.
RunRequest read_run_request(std::string_view body, const Library& library);

// What a measured run says about its server, which decides what the program reads: InputError for anything but fields
// and names that the page itself may send.
void check_deployment(const Json& deployment, const Library& library);

}  // namespace foretoken
