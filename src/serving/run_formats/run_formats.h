// Results of other tools as measured runs. Files are recognized by what stands in them, never by their names.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "serving/runs/measured_run.h"

namespace foretoken {

struct RunFile;
class TokenCounter;

struct RunFormat {
  std::string_view name;
  std::string_view summary;
  bool (*recognizes)(const RunFile& file);
  // InputError with file, line and path. What the tool does not tell stays empty; assumptions are noted.
  MeasuredRun (*read)(const RunFile& file);
};

std::span<const RunFormat> run_formats();

// The text of one file. InputError, which lists the formats, where none recognizes it.
MeasuredRun parse_run(std::string_view text, const std::string& source, const std::string& header = "",
                      TokenCounter* tokenizer = nullptr);

// A run folder, or one file of any format. A tokenizer counts the tokens of files that hold texts. Some hold no times
// (a log, samples, a list of prompts): check_run() refuses those.
MeasuredRun read_run(const std::filesystem::path& path, TokenCounter* tokenizer = nullptr);

// What another file of the same run knows on top: fields that are empty are filled, requests and samples come from the
// one that has them.
void complete_run(MeasuredRun& run, MeasuredRun more);

}  // namespace foretoken
