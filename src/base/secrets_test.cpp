#include "base/secrets.h"

#include <gtest/gtest.h>

namespace foretoken::secrets_test {

TEST(Secrets, passwords_of_addresses_are_hidden) {
  EXPECT_EQ(without_passwords("postgresql://me:s3cret@host:5432/plans"), "postgresql://me:***@host:5432/plans");
  EXPECT_EQ(without_passwords("postgresql:///plans?host=/run&password=s3cret&user=me"),
            "postgresql:///plans?host=/run&password=***&user=me");
  EXPECT_EQ(without_passwords("postgresql://h/d?sslpassword=s3cret"), "postgresql://h/d?sslpassword=***");
}

TEST(Secrets, signs_inside_a_password_do_not_end_it) {
  EXPECT_EQ(without_passwords("postgres://me:s3:c@r e/t'@host/plans"), "postgres://me:***@host/plans");
}

TEST(Secrets, several_addresses_in_a_sentence_are_found) {
  EXPECT_EQ(without_passwords("from 'postgresql://a:s3cret@h/d' to http://b:s3cret@h:80/ and on"),
            "from 'postgresql://a:***@h/d' to http://b:***@h:80/ and on");
}

TEST(Secrets, what_holds_no_password_stays_as_it_is) {
  for (const char* text : {"", "results.sqlite", "postgresql://me@host:5432/plans", "://", "a: b@c"}) {
    EXPECT_EQ(without_passwords(text), text);
  }
}

}  // namespace foretoken::secrets_test
