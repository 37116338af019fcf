// A file that a command writes as it goes.
#pragma once

#include <fstream>
#include <ostream>
#include <string>
#include <string_view>

namespace foretoken {

// Nothing where no name was given. InputErrors name the flag that gave it.
class OutFile {
 public:
  enum class Mode { replace, append };

  OutFile(std::string flag, std::string path, Mode mode = Mode::replace);
  bool wanted() const { return !path_.empty(); }
  std::ostream& stream() { return file_; }
  void close();  // says so when not all could be written

 private:
  std::string flag_, path_;
  std::ofstream file_;
};

// Where a file was made to see whether it can be written, but nothing was.
void remove_if_empty(const std::string& path);

// A page or table for people: flags stand in place of the {fields} that it names.
void write_report(const std::string& path, std::string_view text);

// Makes the folder where it is not there. InputError, before any long work, where files cannot be written in it.
void check_out_folder(const std::string& flag, const std::string& path);

}  // namespace foretoken
