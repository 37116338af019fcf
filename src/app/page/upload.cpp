#include "app/page/upload.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/file.h"
#include "base/replace.h"

namespace foretoken {
namespace {

constexpr size_t longest_name = 100;
constexpr std::string_view gzip_magic = "\x1f\x8b";

bool is_plain_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::strchr("._-", c) != nullptr;
  };
  return !name.empty() && name.size() <= longest_name && name.front() != '.' && name.front() != '-' &&
         name.find('\0') == std::string::npos && std::all_of(name.begin(), name.end(), is_plain);
}

// A file system in memory, where there is one.
std::filesystem::path parent_folder() {
  const char* const in_memory = "/dev/shm";
  return access(in_memory, W_OK | X_OK) == 0 ? std::filesystem::path(in_memory)
                                             : std::filesystem::temp_directory_path();
}

}  // namespace

std::vector<UploadedFile> read_upload(const JsonView& value) {
  value.allow_only({"files"});
  std::vector<UploadedFile> files;
  size_t bytes = 0;
  for (const JsonView& one : value.at("files").items()) {
    one.allow_only({"name", "content"});
    if (files.size() == most_upload_files) value.at("files").fail(fmt::format("at most {} files", most_upload_files));
    UploadedFile file{.name = one.at("name").string()};
    const auto is_same = [&](const UploadedFile& other) { return other.name == file.name; };
    if (!is_plain_name(file.name) || std::any_of(files.begin(), files.end(), is_same)) {
      one.at("name").fail("a file name of letters, digits, dots, dashes and underscores, each once");
    }
    const auto content = from_base64(one.at("content").string());
    if (!content) one.at("content").fail("base64");
    bytes += content->size();
    if (bytes > most_upload_bytes) one.at("content").fail(fmt::format("at most {} MiB", most_upload_bytes >> 20));
    file.content.assign(content->begin(), content->end());
    // A few bytes may unpack to gigabytes.
    if (file.content.starts_with(gzip_magic)) one.at("content").fail("a file that is not compressed");
    files.push_back(std::move(file));
  }
  if (files.empty()) value.at("files").fail("at least one file");
  return files;
}

UploadFolder::UploadFolder(const std::vector<UploadedFile>& files) {
  std::string name = (parent_folder() / "foretoken-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw InputError({.source = "upload", .expected = fmt::format("a place to keep it ({})", std::strerror(errno))});
  }
  folder_ = name;
  if (files.size() == 1 && files.front().name != "run.json") only_ = files.front().name;
  for (const UploadedFile& file : files) {
    // As it came: write_file would compress what is called .gz.
    std::FILE* const out = std::fopen((folder_ / file.name).c_str(), "wb");
    const bool is_written =
        out != nullptr && std::fwrite(file.content.data(), 1, file.content.size(), out) == file.content.size();
    const bool is_closed = out != nullptr && std::fclose(out) == 0;
    if (!is_written || !is_closed) {
      std::filesystem::remove_all(folder_);
      throw InputError({.source = file.name, .expected = "room to keep it while the question is answered"});
    }
  }
}

UploadFolder::~UploadFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string UploadFolder::place() const {
  return only_.empty() ? folder_.string() : (folder_ / only_).string();
}

std::string UploadFolder::hidden_in(std::string text) const {
  replace_all(text, folder_.string() + "/", "");
  replace_all(text, folder_.string(), "upload");
  replace_all(text, folder_.filename().string(), "upload");
  return text;
}

}  // namespace foretoken
