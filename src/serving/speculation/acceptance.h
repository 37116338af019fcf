// How many drafted tokens a verification step accepts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace foretoken {

// A draft is accepted only if all before it were. So one list says everything: the chance that the first i + 1 drafts
// are all accepted, which never rises from one position to the next (vLLM's synthetic_acceptance_rates).
class Acceptance {
 public:
  Acceptance() = default;
  // InputError, naming `source`, unless each is within 0 and 1 and none exceeds the one before it.
  Acceptance(std::vector<double> reached, const std::string& source);

  // Each draft is accepted with the same chance, given those before it; `decay` times it at each position further on.
  static Acceptance constant(double rate, int64_t drafts, double decay = 1);
  // Requests differ: each has one rate of its own, uniform within `rate` +- `spread`, for all its drafts.
  static Acceptance by_request(double rate, double spread, int64_t drafts);
  // So many tokens come out of a verification in the mean, the one that needs no draft included. As vLLM forces it
  // (config/speculative.py, _acceptance_length_to_rates): the least variance that a mean allows.
  static Acceptance of_mean_length(double tokens, int64_t drafts);
  // Weights of 0, 1, 2, ... accepted drafts.
  static Acceptance of_distribution(std::span<const double> weights);
  // The one rate with this mean of tokens that come out of a verification.
  static Acceptance of_rate_with_length(double tokens, int64_t drafts);

  // Texts that are easier to guess, above 0, or harder, below: each chance x becomes x + by x (1 - x), for `by` within
  // -1 (as if each draft had to be right twice) and 1 (as if it had two tries).
  Acceptance tilted(double by) const;
  // The same chances over all requests, but each request has texts of its own: tilted by its place within +-spread.
  Acceptance varying_by_request(double spread) const;

  // Chances by position, over all requests; its size is the longest draft they are known for.
  const std::vector<double>& reached() const { return reached_; }
  // Drafts of a chain of `drafts` that are accepted, for a number that is uniform in [0, 1) in each verification, and
  // one that is so over requests and the same in all verifications of a request.
  int64_t accepted(int64_t drafts, double uniform, double of_request) const;
  // Tokens that come out of one verification of `drafts` drafts: 1 + sum of the chances. For one constant rate a this
  // is (1 - a^(k+1)) / (1 - a) (Leviathan et al., ICML 2023, equation 1).
  double expected_tokens(int64_t drafts) const;

 private:
  std::vector<double> reached_;
  double least_rate_ = 0, most_rate_ = 0;  // of requests; equal: all have the chances of `reached_`
  double spread_ = 0;                      // of the tilt from request to request
};

}  // namespace foretoken
