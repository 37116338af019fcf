// Layouts under load: simulated runs at several rates, and the highest rate that keeps every limit.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/serving/layout_bounds.h"
#include "plan/serving/layout_engines.h"
#include "plan/serving/pooled_latencies.h"
#include "serving/serving_run.h"

namespace foretoken {

struct CapacitySearch;
struct TriedRate;
struct PlanPoint;

enum class Effort : uint8_t {
  closed_form,  // no run: what layouts usually reach of their bounds, with as wide an interval
  quick,        // short runs of one replica at its share of the rate, capacity within 8%
  ranged,       // the same, also at both ends of the step times' intervals
  full,         // the same as ranged, and a longer run of several replicas, capacity within 2%
  promised,   // the same with six long stretches, judged together: what is sure to hold for other requests of the kind
  curve,      // short runs at rates from a tenth of the promised capacity to beyond it, to their end; the runs at
              // capacity and at the rate asked for are those of the promise, and rates at which short runs contradict
              // it are judged as it was
  long_curve  // the same by long runs
};
std::string_view effort_name(Effort effort);
constexpr bool is_at_length(Effort effort) {
  return effort == Effort::full || effort == Effort::promised;
}
// Of the capacity by one stretch, what several are sure to sustain.
inline constexpr double usually_promised = 0.9;

// Lengthy ones say what is promised; the usual ones tell finalists apart and what changes the capacity.
enum class RunLength : uint8_t { brief, usual, lengthy };

// Turns of a conversation go where its KV cache is.
inline constexpr std::string_view router_of_conversations = "session_sticky";

// Of many engines, some are simulated with their share of the requests in flight.
inline int64_t whole_in_flight(double load) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(load - 1e-9)));
}

// One simulated run of the whole layout.
struct PlanRun {
  double rate = 0;        // requests/s offered; with so many always in flight, those that ended
  int64_t in_flight = 0;  // of a closed loop; 0 = none
  int64_t requests = 0;
  bool attained = false;            // every limit is kept
  std::vector<double> achieved_ms;  // of each limit, in the question's order
  double output_tokens_per_s = 0;   // where the limits are kept: of a service that goes on for ever
  double tokens_per_s_of_user = 0;  // 1 / mean TPOT; 0 where answers are single tokens
  double goodput = 0;               // requests/s that meet all limits themselves
  double failed_share = 0;          // of the requests
  double computed_again = 1;        // prompt tokens computed, over those that no earlier prompt of the run began with
  // Of the facility, for an output token; zero where it is not known what the boards draw. Its interval is that of
  // their power alone.
  Headline joules_per_token = {};
};

struct PlanPoint {
  ServingLayout layout;
  Effort effort = Effort::quick;
  Headline capacity;  // requests/s; of quick effort without an interval, unless judged by its slow end
  // Fewest in flight and lowest rate first; where the rate asked for can be served, one is at that. Runs that were sure
  // to break a limit were ended before and are not among them.
  std::vector<PlanRun> runs;
  int64_t kv_tokens = 0;  // that the cache of one engine holds (of one that decodes)
  // Requests/s by shorter runs, that led to the capacity: of some hundred requests (of the smallest part alone, because
  // a share of the whole's would differ in the last digit), and of a thousand or more. 0 where there were none.
  double short_part_capacity = 0, usual_capacity = 0;
  double lengthy_capacity = 0;  // by one stretch of a lengthy run, which all that were simulated at length have had

  const PlanRun* at_capacity() const;         // the fastest run that keeps the limits; null = none does
  const PlanRun* at_rate(double rate) const;  // null = there was none
};

// A run of one stretch of the traffic, that any simulator of the question may do for another.
struct StretchTask {
  ServingLayout layout, part;  // the whole, and what is simulated of it
  RunLength length = RunLength::brief;
  double rate = 0;  // of the whole
  StepBound bound = StepBound::value;
  int64_t stretch = 0;
  int64_t judged_together = 1;  // stretches, of which so many requests may be late
  bool to_its_end = false;      // else it ends once they are too many
  bool metered = false;
  std::optional<size_t> acceptance_end =
      {};  // of drafts, where nobody knows it: at_acceptance_end(); nothing = as assumed

  std::string key() const;
};
struct StretchOutcome {
  std::optional<PlanRun> run;  // nothing where it was ended because it is sure to break a limit
  bool keeps_up = false;
  double ended_share = 0;  // of the requests of all stretches judged together, where it was ended
  LatencyLog latencies{0};
};
// All of them, in their order.
using RunStretches = std::function<std::vector<StretchOutcome>(std::span<const StretchTask>)>;

// What makes an evaluation shorter and changes nothing of it.
struct EvaluationHelp {
  const PlanPoint* known = nullptr;  // the layout with less effort
  RunStretches run_stretches = {};   // on several threads or by several processes; nothing = here, one by one
  int64_t workers = 0;               // of these together; 0 = not known
};

// Ways to the same answer with less work: bounds rule layouts out, and runs end once they are sure to break a limit.
enum class Shortcuts : uint8_t { taken, none };

// Runs layouts one by one. Not thread-safe; what it is given outlives it.
class LayoutSimulator {
 public:
  // `check_wanted`, where there is one, is called often; what it throws ends the work.
  LayoutSimulator(const ServingQuestion& question, const Traffic& traffic, EngineShelf& shelf,
                  std::function<void()> check_wanted = {}, Shortcuts shortcuts = Shortcuts::taken)
      : question_(&question),
        traffic_(&traffic),
        shelf_(&shelf),
        check_wanted_(std::move(check_wanted)),
        shortcuts_(shortcuts) {}

  LayoutJudgement judge(const ServingLayout& layout);
  // Depends on the question, the traffic and the arguments alone. A layout that is pruned has no capacity.
  PlanPoint evaluate(const ServingLayout& layout, Effort effort, const EvaluationHelp& help = {});
  StretchOutcome run_stretch(const StretchTask& task);

  // What a run of the layout at this load (Trial) is made of: a part of the traffic with so many requests, of which
  // part 0 begins at the usual start, so that all runs of a question agree. The engines are those of the shelf.
  ServingRunRequest run_request(const ServingLayout& layout, const LayoutEngines& engines, double load,
                                int64_t requests, int64_t part = 0) const;
  int64_t requests_for(Effort effort, double load) const;
  // What is simulated of a layout at length: as many of its equal engines as tell what all of them do at this rate.
  ServingLayout long_part(const ServingLayout& layout, double rate) const;

 private:
  struct TriedRun;
  struct Trial;
  class RateTrial;
  class Evaluation;

  // A capacity, and those of the runs that led to it that went to their end.
  struct KeptRuns {
    double capacity = 0;
    std::vector<PlanRun> runs = {};

    TriedRate added(const TriedRun& tried);
    // The capacity from the highest load that holds.
    void set_capacity(double load);
    KeptRuns times(double number) const;
  };
  struct RelativeInterval {
    double low = 1, high = 1;  // of the capacity
  };
  PlanPoint by_closed_form(PlanPoint point, const LayoutJudgement& judgement, const Estimate& step) const;
  std::vector<double> rates_of_curve(double capacity) const;
  // By runs of the trial. `name`: of the layout and the kind of trial.
  const KeptRuns& kept_runs(const std::string& name, const Trial& trial, const CapacitySearch& search);
  // What `find` finds, once.
  const RelativeInterval& interval(const std::string& name, const std::function<RelativeInterval()>& find);
  int64_t requests_for(RunLength length, double load) const;

  const ServingQuestion* question_;
  const Traffic* traffic_;
  EngineShelf* shelf_;
  std::function<void()> check_wanted_;
  Shortcuts shortcuts_;
  std::map<std::string, EngineBounds> bounds_;  // by the layout's key with one replica of each engine
  std::map<std::string, KeptRuns> kept_runs_;   // by name
  std::map<std::string, PlanPoint> promised_;   // by the layout's key
  std::map<std::string, RelativeInterval> intervals_;
};

}  // namespace foretoken
