#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "report/kernel/schedule_report.h"
#include "validate/schedules/validate_schedules.h"

namespace foretoken {
namespace {

class ValidateSchedules : public Command {
 public:
  void declare(Options& options) override {
    options.text("--data", data_, "CSV file of timed schedules", true);
    options.footer(
        "Columns: device, m, n, k, bm, bn, bk, stages, warps, group, us. Keep rows with the same m, n "
        "and k together.\nExample:\n"
        "  foretoken validate schedules --data data/measured_schedules/unfitted.csv");
  }

  Answer run(const Library& library) const override {
    const ScheduleValidation result = validate_schedules(data_, library.hardware());
    Answer answer = validation_answer(result.errors, "schedules");
    answer.text += schedule_choices_text(result.choices);
    answer.json.set("choices", schedule_choices_json(result.choices));
    return answer;
  }

 private:
  std::string data_;
};

}  // namespace

std::unique_ptr<Command> make_validate_schedules() {
  return std::make_unique<ValidateSchedules>();
}

}  // namespace foretoken
