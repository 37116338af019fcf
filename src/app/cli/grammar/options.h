// The flags of one command. Wraps the command-line library, so that commands compile without it and every wrong value
// is an InputError like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/grammar/declarations.h"
#include "base/json.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretoken {

// One flag of a command, bound to what it fills.
struct OptionField {
  FlagDeclaration declaration;
  std::function<void(const std::string& text)> take;  // InputError names the flag
  std::function<Json()> value;                        // what it holds now
  CLI::Option* on_line = nullptr;                     // what the command line's parser knows of it
  bool filled = false;                                // by a question in JSON

  bool was_typed() const;
  bool was_given() const { return filled || was_typed(); }
};

// Names are given as "--tensor-parallel-size,-tp"; the target's value before parsing is the default shown in --help.
class Options {
 public:
  explicit Options(CLI::App& app);
  ~Options();

  void flag(const std::string& names, bool& target, const std::string& help);  // also --no-x
  // Nothing where it was not given: what holds then depends on other flags, and `help` says how.
  void flag(const std::string& names, std::optional<bool>& target, const std::string& help);
  void text(const std::string& names, std::string& target, const std::string& help, bool required = false);
  void list(const std::string& names, std::vector<std::string>& target, const std::string& help,
            bool required = false);                                                                 // a,b or repeated
  void texts(const std::string& names, std::vector<std::string>& target, const std::string& help);  // repeated; whole
  // "count=2,device=l40s" (parse_settings); in JSON an object.
  void settings(const std::string& names, std::string& target, const std::string& help);
  void settings(const std::string& names, std::vector<std::string>& target, const std::string& help);  // repeated
  void integer(const std::string& names, int64_t& target, Range<int64_t> allowed, const std::string& help,
               bool required = false);
  void number(const std::string& names, double& target, Range<double> allowed, const std::string& help,
              bool required = false);
  // In USD: "$2.5" is 2.5.
  void money(const std::string& names, double& target, Range<double> allowed, const std::string& help);
  void choice(const std::string& names, std::string& target, std::vector<std::string> allowed, const std::string& help,
              bool required = false);

  void heading(const std::string& title);    // groups the flags that follow in --help
  void footer(const std::string& examples);  // shown below the flags
  // Once all are declared: the flags people use. --help shows these and required ones, --help-all every flag.
  void show_first(const std::vector<std::string>& flags);
  Options& subcommand(const std::string& name, const std::string& summary);  // exactly one must be chosen
  void make_subcommand_optional();         // once they are declared: flags of the command itself can do without
  CommandDeclaration declaration() const;  // all of the above
  bool was_chosen() const;
  // Leaves out of --help what is not shown first, and counts it; 0 where all is shown.
  size_t hide_rare();

  // For a question that comes without a command line (question.h).
  const std::string& name() const;
  bool needs_subcommand() const;
  std::span<OptionField> fields() { return fields_; }
  std::span<const OptionField> fields() const { return fields_; }
  std::span<const std::unique_ptr<Options>> subcommands() const { return children_; }
  void choose() { chosen_ = true; }  // as if its name had been typed

  // The folder of kernel calibrations that the question asks for (kernel_source_flags.h); empty: those of the library.
  std::string& calibration() { return calibration_; }
  const std::string& calibration() const { return calibration_; }
  // The file of a calibrated deployment that the question is about (kernel_source_flags.h); empty: none.
  std::string& deployment() { return deployment_; }
  const std::string& deployment() const { return deployment_; }

  // The command line as it was typed, quoted for a shell: what reproduces an answer.
  const std::string& line() const { return line_; }
  void set_line(const std::string& line);         // also of its subcommands
  bool was_given(const std::string& flag) const;  // typed or in a question, by any of its names; also as --no-x

  // After parsing: InputError for a flag that was given although what was asked for (`by`, in words) would not use it:
  // one that is not in the list and not below one of the headings; or, the other way round, one that is.
  void allow_only(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
                  const std::string& by) const;
  void refuse(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
              const std::string& by) const;
  // The same for flags that say nothing without something else: `needed`, another flag or in words.
  void refuse_without(const std::string& needed, const std::vector<std::string>& flags,
                      const std::vector<std::string>& headings = {}) const;

  // After parsing: InputError for a required flag that was not given. (The library would complain about these before it
  // looks at misspelt flags, and so hide the real mistake.)
  void check_required() const;

 private:
  // The first flag that was given and (if `listed`) is one of those, or is none of them. Empty: no such flag.
  std::string first_given(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
                          bool listed) const;
  using Take = std::function<void(const std::string& flag, const std::string& value)>;
  void add(FlagDeclaration declaration, Take take, std::function<Json()> value);
  void add_text(FlagDeclaration declaration, std::string& target);
  void add_texts(FlagDeclaration declaration, std::vector<std::string>& target);
  void add_number(const std::string& names, double& target, Range<double> allowed, const std::string& help,
                  bool required, std::string_view sign);
  CLI::App& app_;
  std::string heading_ = "Options";
  std::vector<std::string> shown_first_;
  std::string line_, calibration_, deployment_;
  std::vector<std::unique_ptr<Options>> children_;
  std::vector<OptionField> fields_;
  bool chosen_ = false;
};

// Short flags of more than one letter, as vLLM users type them (-tp), in the form that the parser knows.
std::vector<std::string> with_library_flags(std::vector<std::string> arguments,
                                            const std::function<bool(const std::string& flag)>& is_own = {});

// Flags inside the value of another: "device=h100_sxm,tp=2" means --device h100_sxm -tp 2 of those that `declare`
// declares; `check` may look at what was given. InputError names the outer flag.
void parse_settings(const std::string& flag, const std::string& text, const std::function<void(Options&)>& declare,
                    const std::function<void(const Options&)>& check = {});

// A number in the list that a flag takes. InputError names the flag.
double parse_listed_number(const std::string& flag, const std::string& text, Range<double> allowed,
                           const std::string& expected);

// A whole number as users type it: 4096, 4k (4,000), 4K (4,096), 1.5m, 2M. InputError names the flag.
using ParseSize = int64_t(const std::string& flag, const std::string& text, Range<int64_t> allowed);
ParseSize parse_size;
// The same of bytes, which may have a unit: 64MiB, 1GB (10^9).
ParseSize parse_byte_size;

// One such number, or doubling from the first to the last: 1K:1G.
std::vector<int64_t> parse_sizes(const std::string& flag, const std::string& text, Range<int64_t> allowed,
                                 ParseSize* parse = &parse_size);

}  // namespace foretoken
