#include "app/http/request_parser.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::request_parser_test {

struct Reading {
  std::vector<HttpRequest> requests;
  int status = 0;
  std::string error;
  bool operator==(const Reading&) const = default;
};

// The bytes in pieces of the given lengths, the last of them until the end.
Reading read(std::string_view bytes, const std::vector<size_t>& pieces, const HttpLimits& limits = {}) {
  HttpRequestParser parser(limits);
  Reading reading;
  std::string unread;
  size_t at = 0, piece = 0;
  while (at < bytes.size()) {
    const size_t size = piece < pieces.size() ? pieces[piece++] : bytes.size() - at;
    unread += bytes.substr(at, size);
    at = std::min(at + size, bytes.size());
    size_t used = 1;
    while (used > 0 && parser.error_status() == 0) {
      used = parser.feed(unread);
      unread.erase(0, used);
      if (parser.complete()) reading.requests.push_back(parser.take());
    }
  }
  reading.status = parser.error_status();
  reading.error = parser.error();
  return reading;
}

Reading read(std::string_view bytes, const HttpLimits& limits = {}) {
  return read(bytes, {}, limits);
}

constexpr std::string_view samples[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET /v1/models?x=1&y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /b HTTP/1.0\r\n\r\nPOST /c HTTP/1.1\r\nhost:b\r\n"
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: no\r\n\r\nGET /d HTTP/1.1\r\nHost: "
    "a\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nhello",
    "POST /c HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    "GET / HTTP/1.1\nHost: a\n\n",
    "GARBAGE\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nLong: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\n",
};

TEST(HttpRequestParser, reads_the_same_however_the_bytes_are_split) {
  const HttpLimits limits{.max_header_bytes = 100, .max_headers = 4, .max_body_bytes = 100};
  RandomStream random(1, "splits");
  for (const std::string_view bytes : samples) {
    SCOPED_TRACE(bytes);
    const Reading whole = read(bytes, limits);
    EXPECT_EQ(read(bytes, std::vector<size_t>(bytes.size(), 1), limits), whole);
    for (int i = 0; i < 200; ++i) {
      std::vector<size_t> pieces;
      for (size_t size = 0; size < bytes.size(); size += pieces.back()) pieces.push_back(1 + random.below(20));
      EXPECT_EQ(read(bytes, pieces, limits), whole);
    }
  }
}

TEST(HttpRequestParser, reads_requests_that_follow_each_other_with_lengths_and_chunks) {
  const Reading reading = read(samples[2]);
  ASSERT_EQ(reading.status, 0);
  ASSERT_EQ(reading.requests.size(), 4U);
  EXPECT_EQ(reading.requests[0].body, "hello");
  EXPECT_TRUE(reading.requests[0].keep_alive);
  EXPECT_EQ(reading.requests[1].path, "/b");
  EXPECT_FALSE(reading.requests[1].keep_alive) << "HTTP/1.0 closes unless it says otherwise";
  EXPECT_EQ(reading.requests[2].body, "abcde");
  EXPECT_EQ(reading.requests[2].header("host"), "b");
  EXPECT_EQ(reading.requests[3].path, "/d");
}

TEST(HttpRequestParser, takes_the_query_off_the_path) {
  const Reading reading = read(samples[1]);
  ASSERT_EQ(reading.requests.size(), 1U);
  EXPECT_EQ(reading.requests[0].path, "/v1/models");
  EXPECT_EQ(reading.requests[0].query, "x=1&y");
  EXPECT_FALSE(reading.requests[0].keep_alive);
}

TEST(HttpRequestParser, takes_escapes_out_of_the_path_and_leaves_the_query) {
  const auto asked = [](const std::string& target) { return read("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n"); };
  const Reading reading = asked("/v1/models/meta-llama%2FLlama+3%2e1%3fx?a=%2F");
  ASSERT_EQ(reading.requests.size(), 1U);
  EXPECT_EQ(reading.requests[0].path, "/v1/models/meta-llama/Llama+3.1?x") << "cut at the question mark before";
  EXPECT_EQ(reading.requests[0].query, "a=%2F");
  for (const char* wrong : {"/a%", "/a%2", "/a%2?b", "/a%zz", "/a%+1", "/a%00b"})
    EXPECT_EQ(asked(wrong).status, 400) << wrong;
}

TEST(HttpMessage, addresses_of_six_stand_in_brackets) {
  EXPECT_EQ(host_and_port("::1", 8000), "[::1]:8000");
  EXPECT_EQ(host_and_port("127.0.0.1", 80), "127.0.0.1:80");
  EXPECT_EQ(host_and_port("gateway", 443), "gateway:443");
}

TEST(HttpRequestParser, refuses_what_servers_could_read_differently) {
  const auto status = [](const std::string& headers) {
    return read("POST / HTTP/1.1\r\n" + headers + "\r\nabc").status;
  };
  EXPECT_EQ(status("Host: a\r\nContent-Length: 3\r\n"), 0);
  EXPECT_EQ(status("Content-Length: 3\r\n"), 400) << "no host";
  EXPECT_EQ(status("Host: a\r\nHost: a\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: +3\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 3x\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nContent-Length: 99999999999999999999999\r\n"), 400);
  EXPECT_EQ(status("Host: a\r\nTransfer-Encoding: gzip\r\n"), 501);
  EXPECT_EQ(status("Host: a\r\nName : b\r\n"), 400) << "a space before the colon";
  EXPECT_EQ(status("Host: a\r\n folded\r\n"), 400);
  EXPECT_EQ(status(std::string("Host: a\0b\r\n", 11)), 400);
  EXPECT_EQ(read("GET / HTTP/2.0\r\n").status, 505);
  EXPECT_EQ(read("GET http://a/ HTTP/1.1\r\n").status, 400);
}

TEST(HttpRequestParser, refuses_what_is_too_large_before_it_is_kept) {
  const HttpLimits limits{.max_header_bytes = 200, .max_headers = 3, .max_body_bytes = 10};
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", limits).status, 413);
  EXPECT_EQ(
      read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n3\r\n", limits).status,
      413);
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", limits).status,
            413);
  EXPECT_EQ(read(std::string(300, 'a'), limits).status, 431);
  EXPECT_EQ(read("GET / HTTP/1.1\r\nHost: a\r\na: 1\r\nb: 1\r\nc: 1\r\n\r\n", limits).status, 431);
}

TEST(HttpRequestParser, says_when_the_client_waits_for_a_word_before_the_body) {
  HttpRequestParser parser({});
  parser.feed("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(parser.expects_continue());
  parser.feed("a");
  EXPECT_FALSE(parser.expects_continue());
}

TEST(HttpMessage, answers_carry_their_length_or_come_in_chunks) {
  const std::string whole = response_bytes({.status = 404, .body = "{}"}, true);
  EXPECT_TRUE(whole.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_NE(whole.find("Content-Length: 2\r\n"), std::string::npos);
  EXPECT_TRUE(whole.ends_with("\r\n\r\n{}"));
  std::string stream;
  append_chunk(stream, "");
  EXPECT_EQ(stream, "") << "an empty chunk would end the stream";
  append_chunk(stream, "0123456789abcdef");
  EXPECT_EQ(stream, "10\r\n0123456789abcdef\r\n");
}

}  // namespace foretoken::request_parser_test
