#include "app/cli/grammar/options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli/grammar/help_layout.h"
#include "app/cli/grammar/money.h"
#include "base/byte_size.h"
#include "base/error.h"
#include "base/text.h"
#include "compose/engine_release.h"

namespace foretoken {
namespace {

// The library knows one-letter short names only; longer ones are rewritten before it sees them (with_library_flags).
std::string library_names(const std::vector<std::string>& names) {
  std::string kept;
  for (const std::string& name : names) {
    const bool long_short_name = name.size() > 2 && name[0] == '-' && name[1] != '-';
    if (!long_short_name) kept += (kept.empty() ? "" : ",") + name;
  }
  return kept;
}

std::string without_dashes(const std::string& flag) {
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

[[noreturn]] void fail(const std::string& flag, const std::string& value, std::string expected,
                       std::string suggestion = "") {
  throw InputError({.source = flag,
                    .value = printable(value),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

template <class Number>
std::string range_words(std::string_view what, const Range<Number>& allowed) {
  const bool bounded_above = allowed.most < std::numeric_limits<Number>::max();
  const bool bounded_below = allowed.least > std::numeric_limits<Number>::lowest();
  if (bounded_below && bounded_above) return fmt::format("{} from {} to {}", what, allowed.least, allowed.most);
  if (bounded_below) return fmt::format("{} of at least {}", what, allowed.least);
  return std::string(what);
}

const std::map<std::string, std::string, std::less<>>& long_short_flags() {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"-tp", "--tensor-parallel-size"}, {"-pp", "--pipeline-parallel-size"}, {"-dp", "--data-parallel-size"},
      {"-ep", "--expert-parallel-size"}, {"-cp", "--context-parallel-size"},  {"-sc", "--speculative-config"}};
  return names;
}

// The parts between commas, without empty ones.
std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Words behind the flag's value that belong to it too become one value with commas.
template <class Belongs>
void join_words(const char* flag, const Belongs& belongs, std::vector<std::string>& arguments) {
  const auto found = std::find(arguments.begin(), arguments.end(), flag);
  if (found == arguments.end() || found + 1 == arguments.end()) return;
  const auto first = found + 1;
  const auto end = std::find_if_not(first + 1, arguments.end(), belongs);
  for (auto word = first + 1; word != end; ++word) *first += "," + *word;
  arguments.erase(first + 1, end);
}

Json strings_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

// A list that names a release of an engine takes its other releases too: "vllm-0.12" beside "vllm" and "vllm-0.19".
bool takes_releases(const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(), [](const std::string& name) { return engine_release(name); });
}

// The name of such a release; empty for other values.
std::string other_release(const std::string& value, const std::vector<std::string>& allowed) {
  const std::optional<EngineRelease> release = engine_release(value);
  if (!release || !takes_releases(allowed)) return {};
  const bool is_listed = std::find(allowed.begin(), allowed.end(), release->family) != allowed.end();
  return is_listed ? lower_case(release_name(*release)) : std::string();
}

}  // namespace

Options::Options(CLI::App& app) : app_(app) {}
Options::~Options() = default;

bool OptionField::was_typed() const {
  return on_line->count() > 0;
}

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  FlagDeclaration declaration{
      .names = comma_separated(names), .kind = FlagKind::flag, .help = help, .usual = target, .heading = heading_};
  const std::vector<std::string>& all = declaration.names;
  CLI::Option* option = app_.add_flag(library_names(all) + ",!--no-" + all.front().substr(2), target, help);
  option->group(heading_);
  fields_.push_back({.declaration = std::move(declaration),
                     .take = [&target](const std::string& value) { target = value == "true"; },
                     .value = [&target] { return Json(target); },
                     .on_line = option});
}

void Options::flag(const std::string& names, std::optional<bool>& target, const std::string& help) {
  FlagDeclaration declaration{
      .names = comma_separated(names), .kind = FlagKind::flag, .help = help, .heading = heading_};
  const std::vector<std::string>& all = declaration.names;
  CLI::Option* option = app_.add_flag_function(
      library_names(all) + ",!--no-" + all.front().substr(2), [&target](int64_t sign) { target = sign > 0; }, help);
  option->group(heading_)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  fields_.push_back({.declaration = std::move(declaration),
                     .take = [&target](const std::string& value) { target = value == "true"; },
                     .value = [&target] { return target ? Json(*target) : Json(); },
                     .on_line = option});
}

void Options::add(FlagDeclaration declaration, Take take, std::function<Json()> value) {
  const std::string flag = declaration.names.front();
  const auto take_one = [flag, take = std::move(take)](const std::string& text) { take(flag, text); };
  const auto callback = [take_one](const CLI::results_t& results) {
    for (const std::string& text : results) take_one(text);
    return true;
  };
  std::string help = declaration.help;
  const bool explains_choices =
      std::all_of(declaration.choices.begin(), declaration.choices.end(),
                  [&](const std::string& choice) { return help.find(choice) != std::string::npos; });
  if (!explains_choices) help += fmt::format(": {}", fmt::join(declaration.choices, ", "));
  std::string remark = declaration.required ? "(required)" : "";
  if (!declaration.fallback.empty()) remark = fmt::format("[{}]", declaration.fallback);
  CLI::Option* option = app_.add_option(library_names(declaration.names), callback, help);
  option->group(heading_)->type_name("")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option->option_text(remark);
  // Several words without a flag are one list.
  constexpr int most_words = 10'000;
  const bool takes_all = declaration.is_positional() && declaration.kind == FlagKind::list;
  option->expected(1, takes_all ? most_words : 1);
  if (takes_all) option->allow_extra_args();
  declaration.heading = heading_;
  fields_.push_back(
      {.declaration = std::move(declaration), .take = take_one, .value = std::move(value), .on_line = option});
}

void Options::add_text(FlagDeclaration declaration, std::string& target) {
  declaration.kind = FlagKind::text;
  declaration.fallback = target;
  if (!target.empty()) declaration.usual = target;
  add(
      std::move(declaration), [&target](const std::string&, const std::string& value) { target = value; },
      [&target] { return Json(target); });
}

void Options::add_texts(FlagDeclaration declaration, std::vector<std::string>& target) {
  declaration.kind = FlagKind::texts;
  add(
      std::move(declaration), [&target](const std::string&, const std::string& value) { target.push_back(value); },
      [&target] { return strings_json(target); });
}

void Options::text(const std::string& names, std::string& target, const std::string& help, bool required) {
  add_text({.names = comma_separated(names), .help = help, .required = required}, target);
}

void Options::list(const std::string& names, std::vector<std::string>& target, const std::string& help, bool required) {
  add(
      {.names = comma_separated(names), .kind = FlagKind::list, .help = help, .required = required},
      [&target](const std::string&, const std::string& value) {
        for (std::string& part : comma_separated(value)) target.push_back(std::move(part));
      },
      [&target] { return strings_json(target); });
}

void Options::texts(const std::string& names, std::vector<std::string>& target, const std::string& help) {
  add_texts({.names = comma_separated(names), .help = help}, target);
}

void Options::settings(const std::string& names, std::string& target, const std::string& help) {
  add_text({.names = comma_separated(names), .help = help, .takes_settings = true}, target);
}

void Options::settings(const std::string& names, std::vector<std::string>& target, const std::string& help) {
  add_texts({.names = comma_separated(names), .help = help, .takes_settings = true}, target);
}

void Options::integer(const std::string& names, int64_t& target, Range<int64_t> allowed, const std::string& help,
                      bool required) {
  FlagDeclaration declaration{.names = comma_separated(names),
                              .kind = FlagKind::integer,
                              .help = help,
                              .fallback = required ? "" : fmt::format("{}", target),
                              .required = required};
  if (!required) declaration.usual = target;
  if (allowed.least > std::numeric_limits<int64_t>::lowest()) declaration.least = allowed.least;
  if (allowed.most < std::numeric_limits<int64_t>::max()) declaration.most = allowed.most;
  add(
      std::move(declaration),
      [&target, allowed](const std::string& flag, const std::string& value) {
        target = parse_size(flag, value, allowed);
      },
      [&target] { return Json(target); });
}

void Options::number(const std::string& names, double& target, Range<double> allowed, const std::string& help,
                     bool required) {
  add_number(names, target, allowed, help, required, "");
}

void Options::money(const std::string& names, double& target, Range<double> allowed, const std::string& help) {
  add_number(names, target, allowed, help, false, "$");
}

// `sign`: a currency, which may stand before the number; the hour may stand behind it.
void Options::add_number(const std::string& names, double& target, Range<double> allowed, const std::string& help,
                         bool required, std::string_view sign) {
  FlagDeclaration declaration{.names = comma_separated(names),
                              .kind = FlagKind::number,
                              .help = help,
                              .fallback = required ? "" : number_text(target),
                              .required = required,
                              .is_money = !sign.empty()};
  const auto is_finite = [](double bound) { return std::abs(bound) < std::numeric_limits<double>::max(); };
  if (!required && is_finite(target)) declaration.usual = target;
  if (is_finite(allowed.least)) declaration.least = allowed.least;
  if (is_finite(allowed.most)) declaration.most = allowed.most;
  add(
      std::move(declaration),
      [&target, allowed, sign](const std::string& flag, const std::string& value) {
        const std::optional<double> number = sign.empty() ? parse_number(value) : parse_usd_per_hour(value);
        if (!number || *number < allowed.least || *number > allowed.most)
          fail(flag, value, range_words("a number", allowed));
        target = *number;
      },
      [&target] { return Json(target); });
}

void Options::choice(const std::string& names, std::string& target, std::vector<std::string> allowed,
                     const std::string& help, bool required) {
  FlagDeclaration declaration{.names = comma_separated(names),
                              .kind = FlagKind::choice,
                              .help = help,
                              .fallback = target,
                              .choices = allowed,
                              .required = required};
  if (!target.empty()) declaration.usual = target;
  for (const std::string& name : allowed) {
    if (has_releases(name) && takes_releases(allowed)) declaration.release_families.push_back(name);
  }
  add(
      std::move(declaration),
      [&target, allowed](const std::string& flag, const std::string& value) {
        const auto found = std::find_if(allowed.begin(), allowed.end(),
                                        [&](const std::string& name) { return lower_case(name) == lower_case(value); });
        target = found == allowed.end() ? other_release(value, allowed) : *found;
        if (found != allowed.end() || !target.empty()) return;
        fail(flag, value,
             fmt::format("one of {}{}", fmt::join(allowed, ", "),
                         takes_releases(allowed) ? ", or one with a release, as in vllm-0.12" : ""),
             nearest_name(value, allowed).value_or(""));
      },
      [&target] { return Json(target); });
}

void Options::heading(const std::string& title) {
  heading_ = title;
}
void Options::footer(const std::string& examples) {
  app_.footer(laid_out_notes(examples));
}

void Options::show_first(const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    const bool known = std::any_of(fields_.begin(), fields_.end(), [&](const OptionField& field) {
      const std::vector<std::string>& names = field.declaration.names;
      return std::find(names.begin(), names.end(), flag) != names.end();
    });
    ensure(known, "only flags of the command are shown first");
  }
  shown_first_ = flags;
}

size_t Options::hide_rare() {
  if (shown_first_.empty()) return 0;
  size_t hidden = 0;
  for (const OptionField& field : fields_) {
    const std::vector<std::string>& names = field.declaration.names;
    const bool shown = field.declaration.required || field.declaration.is_positional() ||
                       std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                         return std::find(shown_first_.begin(), shown_first_.end(), name) != shown_first_.end();
                       });
    if (shown) continue;
    field.on_line->group("");  // the library does not print this group
    ++hidden;
  }
  return hidden;
}

Options& Options::subcommand(const std::string& name, const std::string& summary) {
  app_.require_subcommand(1);
  children_.push_back(std::make_unique<Options>(*app_.add_subcommand(name, summary)));
  return *children_.back();
}

void Options::make_subcommand_optional() {
  app_.require_subcommand(0, 1);
}

CommandDeclaration Options::declaration() const {
  CommandDeclaration declaration{.name = app_.get_name(),
                                 .summary = app_.get_description(),
                                 .footer = app_.get_footer(),
                                 .flags = {},
                                 .subcommands = {},
                                 .needs_subcommand = needs_subcommand()};
  for (const OptionField& field : fields_) declaration.flags.push_back(field.declaration);
  for (const auto& child : children_) declaration.subcommands.push_back(child->declaration());
  return declaration;
}

void Options::check_required() const {
  for (const OptionField& field : fields_) {
    if (!field.declaration.required || field.was_given()) continue;
    const std::string& flag = field.declaration.names.front();
    fail(flag, "not given",
         fmt::format("a value: this command needs it (see --help)\n  {}: {}", flag, field.on_line->get_description()));
  }
  for (const auto& child : children_) {
    if (child->was_chosen()) child->check_required();
  }
}

std::string Options::first_given(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
                                 bool listed) const {
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const OptionField& field : fields_) {
    const FlagDeclaration& flag = field.declaration;
    if (!field.was_given() || flag.is_positional()) continue;
    const bool by_name =
        std::any_of(flag.names.begin(), flag.names.end(), [&](const std::string& name) { return has(flags, name); });
    if ((by_name || has(headings, flag.heading)) == listed) return flag.names.front();
  }
  return "";
}

void Options::allow_only(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
                         const std::string& by) const {
  const std::string flag = first_given(flags, headings, false);
  if (flag.empty()) return;
  std::string used = fmt::format("{}", fmt::join(flags, ", "));
  for (const std::string& heading : headings) used += fmt::format(", and those of \"{}\" in --help", heading);
  throw InputError(
      {.source = flag, .value = fmt::format("together with {}, which does not use it", by), .expected = used});
}

void Options::refuse(const std::vector<std::string>& flags, const std::vector<std::string>& headings,
                     const std::string& by) const {
  const std::string flag = first_given(flags, headings, true);
  if (flag.empty()) return;
  throw InputError({.source = flag,
                    .value = fmt::format("cannot be combined with {}", by),
                    .expected = "one of the two (see --help)"});
}

void Options::refuse_without(const std::string& needed, const std::vector<std::string>& flags,
                             const std::vector<std::string>& headings) const {
  const std::string flag = first_given(flags, headings, true);
  if (flag.empty()) return;
  throw InputError({.source = flag, .value = fmt::format("needs {}", needed), .expected = ""});
}

bool Options::was_given(const std::string& flag) const {
  for (const OptionField& field : fields_) {
    const std::vector<std::string>& names = field.declaration.names;
    if (std::find(names.begin(), names.end(), flag) != names.end()) return field.was_given();
  }
  throw InternalError("only flags that were declared are asked for");
}

const std::string& Options::name() const {
  return app_.get_name();
}

bool Options::needs_subcommand() const {
  return app_.get_require_subcommand_min() > 0;
}

void Options::set_line(const std::string& line) {
  line_ = line;
  for (const std::unique_ptr<Options>& child : children_) child->set_line(line);
}

bool Options::was_chosen() const {
  return chosen_ || app_.parsed();
}

std::vector<std::string> with_library_flags(std::vector<std::string> arguments,
                                            const std::function<bool(const std::string& flag)>& is_own) {
  for (std::string& argument : arguments) {
    const size_t end = std::min(argument.find('='), argument.size());
    // SGLang writes --tp for -tp.
    const size_t dashes = argument.starts_with("--") ? 1 : 0;
    if (dashes == 1 && is_own && is_own(argument.substr(0, end))) continue;
    const auto found = long_short_flags().find(std::string_view(argument).substr(dashes, end - dashes));
    if (found != long_short_flags().end()) argument = found->second + argument.substr(end);
  }
  // Megatron-LM writes modules as words of their own, vLLM's benchmark its goals.
  join_words(
      "--recompute-modules", [](const std::string& word) { return !word.starts_with("-"); }, arguments);
  const auto is_goal = [](const std::string& word) { return word.find_first_of(":<") != std::string::npos; };
  for (const char* flag : {"--goodput", "--slo"}) join_words(flag, is_goal, arguments);
  return arguments;
}

void parse_settings(const std::string& flag, const std::string& text, const std::function<void(Options&)>& declare,
                    const std::function<void(const Options&)>& check) {
  CLI::App app;
  app.set_help_flag();
  Options options(app);
  declare(options);
  std::vector<std::string> arguments;
  for (const std::string& part : comma_separated(text)) {
    const std::string key = part.substr(0, part.find('='));
    arguments.push_back((long_short_flags().contains("-" + key) ? "-" : "--") + part);
  }
  arguments = with_library_flags(std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // the parser takes them from the back
  try {
    app.parse(arguments);
    if (check) check(options);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.path = without_dashes(problem.field.empty() ? problem.source : flag_name(problem.field));
    problem.field.clear();
    problem.source = flag;
    throw InputError(std::move(problem));
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> known;
    for (const CLI::Option* option : std::as_const(app).get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back(name);
    }
    const std::string typed = app.remaining().front();
    const std::string key = without_dashes(typed.substr(0, typed.find('=')));
    constexpr size_t most_listed = 12;
    fail(
        flag, key,
        known.size() <= most_listed
            ? fmt::format("KEY=VALUE,..., each key one of {}", fmt::join(known, ", "))
            : "KEY=VALUE,..., each key a flag of one replica (its model, engine, scheduler and step times) without its "
              "dashes",
        nearest_name(key, known).value_or(""));
  } catch (const CLI::ParseError&) {
    fail(flag, text, "KEY=VALUE,KEY=VALUE,...");
  }
}

double parse_listed_number(const std::string& flag, const std::string& text, Range<double> allowed,
                           const std::string& expected) {
  const std::optional<double> number = parse_number(text);
  if (!number || *number < allowed.least || *number > allowed.most) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return *number;
}

std::vector<int64_t> parse_sizes(const std::string& flag, const std::string& text, Range<int64_t> allowed,
                                 ParseSize* parse) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {parse(flag, text, allowed)};
  const int64_t first = parse(flag, text.substr(0, colon), {std::max<int64_t>(1, allowed.least), allowed.most});
  const int64_t last = parse(flag, text.substr(colon + 1), {first, allowed.most});
  std::vector<int64_t> all;
  for (int64_t size = first; size <= last; size *= 2) all.push_back(size);
  return all;
}

int64_t parse_size(const std::string& flag, const std::string& text, Range<int64_t> allowed) {
  const std::optional<double> number = parse_scaled_number(text);
  const std::optional<int64_t> whole = number ? exact_integer(*number) : std::nullopt;
  if (!whole || !allowed.holds(*whole))
    fail(flag, text,
         range_words("a whole number", allowed) + " (k, m, g, t: powers of 1000; K, M, G, T: powers of 1024)");
  return *whole;
}

int64_t parse_byte_size(const std::string& flag, const std::string& text, Range<int64_t> allowed) {
  std::optional<double> size = parse_scaled_number(text);
  if (!size) size = parse_bytes(text);
  const std::optional<int64_t> whole = size ? exact_integer(*size) : std::nullopt;
  if (!whole || !allowed.holds(*whole)) {
    fail(flag, text,
         range_words("a whole number of bytes", allowed) +
             " (64K, 64M and 1G: powers of 1024, as in nccl-tests; 64MiB; 1GB = 10^9)");
  }
  return *whole;
}

}  // namespace foretoken
