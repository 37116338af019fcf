#include "serving/load/trace.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/load/trace_date.h"

namespace foretoken::load_trace_test {

std::vector<Request> all_of(RequestSource& source) {
  std::vector<Request> requests;
  while (source.next_arrival()) requests.push_back(source.next());
  return requests;
}

std::vector<Request> parsed(const std::string& text, const std::string& name = "trace.csv",
                            const TraceOptions& options = {}) {
  return all_of(*trace_from_text(text, name, options));
}

InputProblem refused(const std::string& text, const std::string& name = "trace.csv") {
  try {
    parsed(text, name);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {.source = "accepted"};
}

TEST(Trace, each_format_is_known_by_its_columns) {
  const struct {
    const char *name, *text;
  } files[] = {
      {"ours.csv", "arrival_s,input_tokens,output_tokens\n0.5,10,3\n2,20,4\n"},
      {"azure.csv",
       "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5000000,10,3\n2023-11-16 18:15:48.0000000,20,4\n"},
      {"mooncake.jsonl",
       "{\"timestamp\": 500, \"input_length\": 10, \"output_length\": 3, \"hash_ids\": [1]}\n"
       "{\"timestamp\": 2000, \"input_length\": 20, \"output_length\": 4, \"hash_ids\": [2]}\n"},
      {"burst.csv",
       "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n0.5,GPT-4,10,3,13,API log\n"
       "2,GPT-4,20,4,24,API log\n"},
      {"vidur.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,10,3\n2,20,4\n"},
  };
  for (const auto& file : files) {
    const std::vector<Request> requests = parsed(file.text, file.name);
    ASSERT_EQ(requests.size(), 2U) << file.name;
    EXPECT_EQ(requests[1].arrival - requests[0].arrival, 1'500'000'000'000) << file.name;
    EXPECT_EQ(requests[0].input_tokens, 10) << file.name;
    EXPECT_EQ(requests[0].output_tokens, 3) << file.name;
    EXPECT_EQ(requests[1].input_tokens, 20) << file.name;
    EXPECT_EQ(requests[1].id, 1) << file.name;
  }
}

TEST(Trace, block_numbers_come_with_their_size_and_without_a_partial_last_block) {
  const auto csv = parsed("arrival_s,input_tokens,output_tokens,block_ids_512\n0,1300,3,7 8 9\n1,512,1,4\n2,5,1,\n");
  EXPECT_EQ(csv[0].prefix_blocks, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(csv[0].prefix_block_tokens, 512);
  EXPECT_EQ(csv[1].prefix_blocks, (std::vector<int64_t>{4}));
  EXPECT_TRUE(csv[2].prefix_blocks.empty());
  const auto fine = parsed("request_id,arrival_s,input_tokens,output_tokens,prefix_block_ids_16\n0,0,33,3,1 2\n");
  EXPECT_EQ(fine[0].prefix_block_tokens, 16);
  const auto json = parsed("{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [5, 6]}\n",
                           "mooncake.jsonl");
  EXPECT_EQ(json[0].prefix_blocks, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(json[0].prefix_block_tokens, 512);
}

TEST(Trace, sessions_and_priorities_are_read_where_they_are) {
  const auto requests =
      parsed("arrival_s,input_tokens,output_tokens,session,priority\n0,1,1,4,-2\n1,1,1,,\n2,1,1,-1,0\n");
  EXPECT_EQ(requests[0].session, 4);
  EXPECT_EQ(requests[0].priority, -2);
  EXPECT_EQ(requests[1].session, -1);
  EXPECT_EQ(requests[2].session, -1);
}

TEST(Trace, arrivals_stretch_and_requests_can_be_cut) {
  const std::string text = "arrival_s,input_tokens,output_tokens\n1,1,1\n3,1,1\n4,1,1\n";
  const auto requests = parsed(text, "t.csv", {.time_scale = 0.5, .max_requests = 2});
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].arrival, 1'500'000'000'000);
}

TEST(Trace, a_broken_row_is_named_by_its_line_however_deep) {
  std::string text = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 200'000; ++i) text += "1,10,10\n";
  const InputProblem problem = refused(text + "1,ten,10\n");
  EXPECT_EQ(problem.line, 200'002);
  EXPECT_EQ(problem.value, "ten");
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}\n";
  EXPECT_EQ(refused(lines + "{\"timestamp\": 1, \"input_length\": 1}\n", "t.jsonl").line, 1001);
  EXPECT_EQ(refused(lines + "{\"timestamp\": 1,\n", "t.jsonl").line, 1001);
}

TEST(Trace, time_never_goes_back) {
  const InputProblem problem = refused("arrival_s,input_tokens,output_tokens\n2,1,1\n1,1,1\n");
  EXPECT_EQ(problem.line, 3);
  EXPECT_NE(problem.expected.find("order of arrival"), std::string::npos);
  EXPECT_EQ(refused("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,1\n2023-11-16 18:15:45,1,1\n").line,
            3);
}

TEST(Trace, negative_and_absurd_values_are_refused) {
  EXPECT_EQ(refused("arrival_s,input_tokens,output_tokens\n0,-1,1\n").line, 2);
  EXPECT_EQ(refused("arrival_s,input_tokens,output_tokens\n1e30,1,1\n").line, 2);
  EXPECT_EQ(refused("arrival_s,input_tokens,output_tokens,block_ids_16\n0,32,1,1 x\n").line, 2);
  EXPECT_EQ(refused("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n").line, 2);
  EXPECT_EQ(refused("[]\n", "t.json").line, 1);
}

TEST(Trace, a_request_without_output_is_passed_on_for_the_run_to_reject) {
  EXPECT_EQ(parsed("arrival_s,input_tokens,output_tokens\n0,10,0\n1,10,1\n").size(), 2U);
}

TEST(Trace, unknown_columns_are_answered_with_the_known_ones) {
  const InputProblem problem = refused("when,prompt,answer\n0,1,1\n");
  EXPECT_NE(problem.expected.find("arrival_s,input_tokens,output_tokens"), std::string::npos);
  EXPECT_NE(refused("input_tokens,output_tokens\n1,1\n").expected.find("{dataset_path}"), std::string::npos);
}

TEST(Trace, formats_do_not_shadow_each_other) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.clock == TraceClock::none) continue;
    const std::string time = format.clock == TraceClock::date ? "2024-05-10 00:00:00.0+00:00" : "0";
    const std::string text = std::string(format.arrival) + "," + std::string(format.input) + "," +
                             std::string(format.output) + "\n" + time + ",5,6\n";
    const auto requests = parsed(text);
    ASSERT_EQ(requests.size(), 1U) << format.name;
    EXPECT_EQ(requests[0].output_tokens, 6) << format.name;
  }
}

TEST(TraceDate, knows_calendar_and_offsets) {
  EXPECT_EQ(parse_date_time("1970-01-01 00:00:00")->seconds, 0);
  EXPECT_EQ(parse_date_time("2000-03-01 00:00:00")->seconds, 951'868'800);
  EXPECT_EQ(parse_date_time("2024-02-29T12:00:00Z")->seconds, 1'709'208'000);
  EXPECT_EQ(parse_date_time("2024-05-10 02:00:00+02:00")->seconds, parse_date_time("2024-05-10 00:00:00")->seconds);
  EXPECT_EQ(parse_date_time("2024-05-10 00:00:00.0000001")->picoseconds, 100'000);
  for (const char* text : {"", "2024", "2024-13-01 00:00:00", "2024-01-01", "2024-01-01 00:00:00.",
                           "2024-01-01 25:00:00", "2024-01-01 00:00:00 ", "2024-01-01 00:00:00+0200"}) {
    EXPECT_FALSE(parse_date_time(text)) << text;
  }
}

TEST(TraceNeedsData, the_published_traces_read_to_their_end) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::filesystem::path folder = std::filesystem::path(data) / "traces";
  const struct {
    const char* file;
    size_t rows;
  } files[] = {{"azure2023_code.csv", 8819}, {"azure2023_conv.csv.gz", 19366}, {"mooncake_conversation.csv.gz", 12031}};
  for (const auto& file : files) EXPECT_EQ(all_of(*open_trace(folder / file.file)).size(), file.rows) << file.file;
  EXPECT_EQ(read_lengths(folder / "arxiv_summarization_lengths.csv.gz").size(), 28257U);
}

}  // namespace foretoken::load_trace_test
