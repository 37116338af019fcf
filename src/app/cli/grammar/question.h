// A question as an object: {"command": "plan serve", "model": "Llama-3.1-8B", ...}. Its fields are the flags of the
// command by field_name. Command lines, files, Python and the page all ask one of these.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/grammar/command.h"
#include "base/error.h"

namespace foretoken {

class Question {
 public:
  // InputError names `source` and the path of the field.
  Question(Json spec, std::string source);
  // Names of a command and subcommand with what a line has without dashes, and its other fields. InputError names
  // flags.
  Question(const std::vector<std::string>& words, const Json& fields);
  // Of a command line; the command is declared and chosen there, and outlives this.
  Question(const Command& command, Options& options);
  Question(Question&&) noexcept;
  ~Question();

  // InputError, with the nearest name, where the words are not those of a command and its subcommands. None: fine.
  static void check_command(const std::vector<std::string>& words);

  // Fields of a question about the same command; what was typed stays.
  void fill(Json spec, std::string source);

  bool has_field(const std::string& name) const { return find_field(name) != nullptr; }
  std::string command_name() const;

  Answer answer(const Library& library) const;
  void check_required() const;
  Json spec() const;                       // every field that was given
  std::vector<std::string> words() const;  // the same on a command line, without the program's name
  std::string line() const;                // the same for a shell

 private:
  struct Declared;
  enum class Naming { fields, flags };
  Question() = default;
  // The number of words that name commands.
  size_t choose(const std::vector<std::string>& words);
  // The same, also where a subcommand is missing.
  size_t choose_named(const std::vector<std::string>& words);
  [[noreturn]] void fail_subcommand(const std::string& word) const;
  void fill_fields();
  OptionField* find_field(const std::string& name) const;
  [[noreturn]] void fail_unknown(const std::string& name, const JsonView& value) const;
  InputError named(const InputError& error) const;
  std::string shown_name(std::string_view field) const;
  InputError of_field(const FlagDeclaration& flag, InputProblem problem) const;

  std::unique_ptr<Declared> declared_;
  const Command* command_ = nullptr;
  std::vector<Options*> levels_;  // the command and its chosen subcommand
  Json given_ = Json::object();   // fields in their order
  std::string source_;
  Naming naming_ = Naming::flags;
};

// Words quoted for a shell where they must be.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace foretoken
