// Files that a browser sends with a question: read from its JSON, and kept in a folder of our own while the question is
// answered. Names come from the browser but no path does.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

struct UploadedFile {
  std::string name;  // letters, digits, dots, dashes and underscores
  std::string content;
};

inline constexpr size_t most_upload_bytes = size_t{5} << 20;  // of all files of a question
inline constexpr size_t most_upload_files = 4;

// {"files": [{"name": "run.json", "content": "base64"}]}, not compressed; InputError names what is wrong.
std::vector<UploadedFile> read_upload(const JsonView& value);

// Gone with the object. In memory where the system has a file system there.
class UploadFolder {
 public:
  explicit UploadFolder(const std::vector<UploadedFile>& files);
  ~UploadFolder();
  UploadFolder(const UploadFolder&) = delete;

  // What a command is given: a single file, else the folder.
  std::string place() const;
  // A text without the folder's name, which is nobody's business.
  std::string hidden_in(std::string text) const;

 private:
  std::filesystem::path folder_;
  std::string only_;  // the name of a single file
};

}  // namespace foretoken
