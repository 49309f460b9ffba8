// Tests of the HTTP server, with well-behaved and hostile peers.
#include "fl_server/metrics/http_server.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/http.h"

namespace gradwire {
namespace {

class PagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_serve_http()) GTEST_SKIP() << "built without libmicrohttpd";
    pages = serve_http("127.0.0.1:0",
                       {{"/page",
                         [this] {
                           made += 1;
                           return HttpPage{"text/plain", "hello\n"};
                         }}},
                       {.connections = 8,
                        .silence = std::chrono::seconds(1),
                        .connection = std::chrono::milliseconds(1500)});
  }
  HttpAnswer ask(const std::string& request) const { return http_ask(pages->address(), request); }

  std::atomic<int> made = 0;
  std::unique_ptr<HttpServer> pages;
};

TEST_F(PagesTest, MakesAPageForEachRequest) {
  for (int k = 1; k <= 3; ++k) {
    const HttpAnswer answer = http_get(pages->address(), "/page");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello\n");
    EXPECT_NE(answer.head.find("Content-Type: text/plain"), std::string::npos) << answer.head;
    EXPECT_EQ(made, k);
  }
  EXPECT_EQ(http_get(pages->address(), "/page?a=b").status, 200);
}

TEST_F(PagesTest, RefusesOtherPathsMethodsAndHosts) {
  EXPECT_EQ(http_get(pages->address(), "/").status, 404);
  EXPECT_EQ(http_get(pages->address(), "/../page").status, 404);
  EXPECT_EQ(ask("POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc").status, 405);
  EXPECT_EQ(ask("DELETE /page HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  EXPECT_EQ(ask("GET /page HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421);
  EXPECT_EQ(ask("GET /page HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\n\r\n").status, 421);
  EXPECT_EQ(made, 0);
  for (const std::string& host :
       std::vector<std::string>{"localhost", "localhost:1", "127.0.0.1", "[::1]:80"})
    EXPECT_EQ(ask("GET /page HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status, 200) << host;
  const HttpAnswer head = ask("HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(PagesTest, SendsNoPageForGarbageAndEndlessHeaders) {
  for (const std::string& bytes : std::vector<std::string>{
           "\r\n\r\n\r\n", std::string("GET\r\n\r\n"), std::string(1000, '\0'), std::string(3000, '\xff'),
           "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
           "GET /page HTTP/1.1\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n",
           std::string(
               "POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n")}) {
    const int status = ask(bytes).status;
    EXPECT_TRUE(status == 0 || status >= 400) << status << " for " << bytes.substr(0, 40);
  }
  EXPECT_EQ(made, 0);
  EXPECT_EQ(http_get(pages->address(), "/page").status, 200);
}

TEST_F(PagesTest, DisconnectsPeersThatNeverEndTheirRequests) {
  std::vector<HttpPeer> slow;
  for (int k = 0; k < 30; ++k) {
    slow.emplace_back(pages->address());
    slow.back().send("GET /page HTTP/1.1\r\n");
  }
  std::atomic<bool> done = false;
  std::thread trickle([&] {  // so that the peers are never silent
    while (!done) {
      for (const HttpPeer& peer : slow) peer.send("A: b\r\n");
      pages->check_time();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_EQ(http_get(pages->address(), "/page").status, 200);
  done = true;
  trickle.join();
}

TEST_F(PagesTest, ReportsAddressesItCannotListenOnInOneLine) {
  try {
    serve_http(pages->address(), {});
    ADD_FAILURE() << "two servers have the same port";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("--metrics " + pages->address() + ": "))
        << error.what();
  }
  EXPECT_THROW(serve_http("nonsense", {}), std::invalid_argument);
}

}  // namespace
}  // namespace gradwire
