// Any bytes are either operating points with sane numbers, rows left out for a reason, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "validate/serving/serving_case.h"

namespace {

using namespace foretoken;

void check(const ServingCase& point) {
  const EngineFlags& flags = point.flags;
  promise(flags.memory_fraction >= 0 && flags.memory_fraction <= 1, "a fraction is one");
  promise(flags.max_num_batched_tokens >= 0 && flags.max_num_seqs >= 0 && flags.block_size >= 0, "sizes have no sign");
  promise(point.pool.replicas >= 1 && point.pool.plan.tensor >= 1 && point.pool.plan.pipeline >= 1 &&
              point.pool.plan.expert >= 1,
          "somebody serves");
  promise(point.drafts >= 0 && point.drafts <= 64, "drafts are few");
  const LengthRange input = point.load.input_range.value_or(LengthRange{});
  const LengthRange output = point.load.output_range.value_or(LengthRange{});
  promise(input.least >= 1 && input.least <= input.most, "prompts have tokens");
  promise(output.least >= 1 && output.least <= output.most, "outputs have tokens");
  promise(!point.measured.empty(), "there is something to compare with");
  for (const MeasuredValue& measured : point.measured) promise(measured.value > 0, "what was measured took time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  static const PublicFacts facts = read_public_facts(FORETOKEN_SOURCE_DIR "/data");
  try {
    ServingCaseReader reader(CsvReader::from_text(std::string(as_text(data, size)), "input"), hardware, facts);
    while (reader.next()) {
      std::string why;
      if (const auto point = reader.read(why)) {
        check(*point);
      } else {
        promise(!why.empty(), "a row is left out for a reason");
      }
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
