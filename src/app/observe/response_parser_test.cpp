#include "app/observe/response_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::response_parser_test {

struct Read {
  HttpResponseParser parser;
  std::string body;
  void feed(std::string_view bytes) {
    parser.feed(bytes, [&](std::string_view piece) { body.append(piece); });
  }
};

constexpr std::string_view chunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";

TEST(HttpResponseParser, an_answer_is_the_same_however_it_is_cut) {
  for (size_t size = 1; size <= chunked.size(); ++size) {
    Read read;
    for (size_t at = 0; at < chunked.size(); at += size) read.feed(chunked.substr(at, size));
    EXPECT_TRUE(read.parser.is_complete());
    EXPECT_TRUE(read.parser.is_event_stream());
    EXPECT_TRUE(read.parser.keeps_alive());
    EXPECT_EQ(read.parser.status(), 200);
    EXPECT_EQ(read.body, "hello world") << size;
  }
}

TEST(HttpResponseParser, a_body_has_a_length_or_ends_with_the_connection) {
  Read sized;
  sized.feed("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nConnection: close\r\n\r\nnoHTTP/1.1 200");
  EXPECT_TRUE(sized.parser.is_complete());
  EXPECT_FALSE(sized.parser.keeps_alive());
  EXPECT_EQ(sized.body, "no");
  Read open;
  open.feed("HTTP/1.0 200 OK\r\n\r\nall of it");
  EXPECT_FALSE(open.parser.is_complete());
  open.parser.closed();
  EXPECT_TRUE(open.parser.is_complete());
  EXPECT_EQ(open.body, "all of it");
}

TEST(HttpResponseParser, a_head_before_the_answer_is_passed_over) {
  Read read;
  read.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(read.parser.is_complete());
  EXPECT_EQ(read.parser.status(), 200);
}

TEST(HttpResponseParser, what_is_no_answer_is_refused) {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/1.1 abc\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    Read read;
    EXPECT_THROW(read.feed(bytes), InputError) << bytes;
  }
  Read cut;
  cut.feed(chunked.substr(0, chunked.size() - 5));
  EXPECT_THROW(cut.parser.closed(), InputError);
}

}  // namespace foretoken::response_parser_test
