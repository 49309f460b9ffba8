// Tests of two TLS filters that exchange bytes: which bytes pass, and which peers are rejected.
#include "proto/security/tls.h"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>

#include "base/random.h"
#include "proto/security/certificates.h"
#include "proto/security/openssl/openssl.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"
#include "tests/support/test_tls.h"

namespace gradwire {
namespace {

std::span<const std::byte> as_bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

using Filter = std::unique_ptr<StreamFilter>;

class Tls : public ::testing::Test {
 protected:
  void SetUp() override { make("authority", kValid); }
  std::filesystem::path make(const std::string& name, std::chrono::seconds validity) {
    const auto to = folder_.path() / name;
    std::filesystem::create_directories(to);
    make_authority(to);
    make_server_certificate(to, to, {"fl.example", "127.0.0.1", "::1"}, validity);
    return to;
  }
  std::unique_ptr<TlsServer> server(const std::string& name = "authority", TlsVersion least = kTestTls) {
    const auto from = folder_.path() / name;
    return std::make_unique<TlsServer>(from / "server.pem", from / "server.key", least, "", "", clock_);
  }
  TrustedServer by_file(const std::string& name = "authority") {
    return {folder_.path() / name / "ca.pem", ""};
  }
  TrustedServer by_pin(const std::string& name = "authority") {
    return {{}, fingerprint_of(folder_.path() / name / "ca.pem")};
  }

  // Moves bytes, at most `most` at a time, until nothing moves. Returns the first error of either end, or an
  // empty text. `of_b` gets the first error of b.
  static std::string carry(StreamFilter& a, StreamFilter& b, std::size_t most = SIZE_MAX,
                           std::string* of_b = nullptr) {
    std::string trouble;
    for (bool moved = true; moved;) {
      moved = false;
      for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        const auto bytes = from->outgoing().first(std::min(from->outgoing().size(), most));
        if (bytes.empty()) continue;
        const std::vector<std::byte> copy(bytes.begin(), bytes.end());
        from->sent(copy.size());
        moved = true;
        const Status status = to->feed(copy);
        if (!status && trouble.empty()) trouble = status.error().message;
        if (!status && to == &b && of_b != nullptr && of_b->empty()) *of_b = status.error().message;
      }
    }
    return trouble;
  }
  static std::string read_all(StreamFilter& filter) {
    std::string text;
    std::array<std::byte, 1000> some;
    for (auto got = filter.read(some); got && *got > 0; got = filter.read(some))
      text.append(reinterpret_cast<const char*>(some.data()), *got);
    return text;
  }
  // Returns why a client with this trust refuses the server. Empty if the client accepts the server.
  std::string refusal(TlsServer& server, const TrustedServer& trusted, const std::string& host = "127.0.0.1",
                      TlsVersion least = TlsVersion::k13) {
    TlsClient client(trusted, least, {}, clock_);
    const Filter here = client.connect(host), there = server.accept();
    const std::string trouble = carry(*here, *there);
    EXPECT_EQ(trouble.empty(), here->ready() && there->ready()) << trouble;
    return trouble;
  }

  static constexpr std::chrono::hours kValid{1};
  TemporaryFolder folder_;
  std::chrono::seconds passed_{0};
  const WallClock clock_ = [this] { return time_now() + passed_.count(); };
};

TEST_F(Tls, OneEndReadsWhatTheOtherWrites) {
  const auto own = server();
  for (const std::size_t most : {SIZE_MAX, std::size_t{1}, std::size_t{7}}) {
    TlsClient client(by_pin());
    const Filter here = client.connect("127.0.0.1"), there = own->accept();
    EXPECT_FALSE(here->ready());
    EXPECT_FALSE(here->outgoing().empty()) << "the client begins";
    EXPECT_EQ(carry(*here, *there, most), "");
    Random random(3, "tls");
    std::string text(most == 1 ? 3000 : 300'000, '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    ASSERT_TRUE(here->write(as_bytes_of(text)));
    ASSERT_TRUE(there->write(as_bytes_of("short")));
    EXPECT_EQ(carry(*here, *there, most), "");
    EXPECT_TRUE(there->has_plain());
    EXPECT_EQ(read_all(*there), text);
    EXPECT_EQ(read_all(*here), "short");
    EXPECT_FALSE(there->has_plain());
    here->end();
    EXPECT_EQ(carry(*here, *there, most), "") << "an end is not an error";
  }
}

TEST_F(Tls, HidesThePlainText) {
  const auto own = server();
  TlsClient client(by_pin());
  const Filter here = client.connect("127.0.0.1"), there = own->accept();
  ASSERT_EQ(carry(*here, *there), "");
  ASSERT_TRUE(here->write(as_bytes_of("a secret that is easy to find")));
  const auto out = here->outgoing();
  const std::string sent(reinterpret_cast<const char*>(out.data()), out.size());
  EXPECT_EQ(sent.find("secret"), std::string::npos);
}

TEST_F(Tls, EndsTheConnectionAtAnyChangedByte) {
  const auto own = server();
  for (std::size_t at : {0, 3, 5, 20, 40}) {
    TlsClient client(by_pin());
    const Filter here = client.connect("127.0.0.1"), there = own->accept();
    ASSERT_EQ(carry(*here, *there), "");
    ASSERT_TRUE(here->write(as_bytes_of("twenty or more bytes of text")));
    std::vector<std::byte> bytes(here->outgoing().begin(), here->outgoing().end());
    bytes[at] ^= std::byte{4};
    (void)there->feed(bytes);
    EXPECT_EQ(read_all(*there), "") << at;
  }
}

TEST_F(Tls, AcceptsOnlyTheTrustedServer) {
  make("other", std::chrono::hours(1));
  const auto own = server(), other = server("other");
  for (const auto& trusted : {by_file(), by_pin()}) {
    EXPECT_EQ(refusal(*own, trusted), "");
    EXPECT_EQ(refusal(*own, trusted, "fl.example"), "");
    EXPECT_EQ(refusal(*own, trusted, "::1"), "");
    EXPECT_NE(refusal(*other, trusted).find("not from the authority"), std::string::npos)
        << refusal(*other, trusted);
    const std::string misnamed = refusal(*own, trusted, "evil.example");
    EXPECT_NE(misnamed.find("fl.example"), std::string::npos) << misnamed;
    EXPECT_NE(refusal(*own, trusted, "127.0.0.2"), "");
  }
}

TEST_F(Tls, RefusesAChainThatOnlyContainsTheTrustedRoot) {
  make("other", std::chrono::hours(1));
  const std::string file = (folder_.path() / "other/server.pem").string();
  folder_.write("other/server.pem", read_file(file) + read_file(folder_.path() / "authority/ca.pem"));
  const auto other = server("other");
  for (const auto& trusted : {by_file(), by_pin()}) {
    const std::string trouble = refusal(*other, trusted);
    EXPECT_NE(trouble.find("not from the authority"), std::string::npos) << trouble;
  }
}

TEST_F(Tls, BothEndsRefuseAnExpiredCertificate) {
  const auto own = server();
  EXPECT_EQ(refusal(*own, by_pin()), "");
  passed_ = 2 * kValid;
  const std::string expired = refusal(*own, by_pin());
  EXPECT_NE(expired.find("has expired"), std::string::npos) << expired;
  EXPECT_THROW(server(), std::invalid_argument);
}

TEST_F(Tls, NamesBothDatesIfTheClockIsBeforeTheFirstDay) {
  const auto own = server();
  passed_ = -std::chrono::hours(24 * 365 * 30);
  const std::string trouble = refusal(*own, by_pin());
  EXPECT_EQ(trouble.find("the clock of this machine says 199"), 0u) << trouble;
  EXPECT_NE(trouble.find("before the first day of the server's certificate (20"), trouble.npos) << trouble;
  EXPECT_NE(trouble.find("set the clock"), trouble.npos) << trouble;
}

TEST_F(Tls, ShakesHandsInFullAtAServerWithOtherTicketKeys) {
  const auto first = server(), restarted = server();
  TlsClient client(by_pin());
  for (TlsServer* const at : {first.get(), first.get(), restarted.get(), restarted.get()}) {
    const Filter here = client.connect("127.0.0.1"), there = at->accept();
    EXPECT_EQ(carry(*here, *there), "");
    EXPECT_TRUE(here->ready() && there->ready());
    ASSERT_TRUE(here->write(as_bytes_of("hello")));
    EXPECT_EQ(carry(*here, *there), "");
    EXPECT_EQ(read_all(*there), "hello");
  }
}

TEST_F(Tls, ResumesNoSessionOnceTheCertificateHasExpired) {
  const auto own = server();
  TlsClient client(by_pin(), TlsVersion::k13, {}, clock_);
  const auto trouble = [&] {
    const Filter here = client.connect("127.0.0.1"), there = own->accept();
    return carry(*here, *there);
  };
  EXPECT_EQ(trouble(), "");
  passed_ = 2 * kValid;
  EXPECT_NE(trouble().find("has expired"), std::string::npos);
}

TEST_F(Tls, TellsTheServerWhyAClientRejectsItsCertificate) {
  make("other", std::chrono::hours(1));
  const auto own = server();
  const auto heard = [&](TlsServer& by, const TrustedServer& trusted, const std::string& host) {
    TlsClient client(trusted, TlsVersion::k13, {}, clock_);
    const Filter here = client.connect(host), there = by.accept();
    std::string words;
    EXPECT_NE(carry(*here, *there, SIZE_MAX, &words), "");
    return words;
  };
  EXPECT_NE(heard(*own, by_pin("other"), "fl.example").find("does not trust this server's authority"),
            std::string::npos);
  EXPECT_NE(heard(*own, by_pin(), "evil.example").find("a --host for each of its names"), std::string::npos);
  passed_ = 2 * kValid;
  EXPECT_NE(heard(*own, by_pin(), "fl.example").find("gradwire-server renew"), std::string::npos);
}

TEST_F(Tls, UsesARenewedCertificateForTheNextConnection) {
  const auto own = server();
  const auto place = folder_.path() / "authority";
  const auto renewed = own->renew();
  ASSERT_TRUE(renewed);
  EXPECT_FALSE(*renewed) << "nothing has changed";
  EXPECT_NE(refusal(*own, by_pin(), "new.example"), "");
  make_server_certificate(place, place, {"new.example"}, std::chrono::hours(1));
  const auto again = own->renew();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again);
  EXPECT_EQ(refusal(*own, by_pin(), "new.example"), "");
  folder_.write("authority/server.pem", "damaged");
  EXPECT_FALSE(own->renew());
  EXPECT_EQ(refusal(*own, by_pin(), "new.example"), "") << "the last good one stays";
}

TEST_F(Tls, AllowsOldVersionsIfBothEndsDo) {
  const auto strict = server("authority", TlsVersion::k13), lenient = server("authority", TlsVersion::k12);
  EXPECT_EQ(refusal(*lenient, by_pin(), "127.0.0.1", TlsVersion::k12), "");
  TlsClient client(by_pin(), TlsVersion::k12);
  const Filter here = client.connect("127.0.0.1"), there = strict->accept();
  std::string strictly;
  if (!carry(*there, *here, SIZE_MAX, &strictly).empty()) {  // from a library without TLS 1.3
    EXPECT_EQ(kTestTls, TlsVersion::k12) << strictly;
    EXPECT_NE(strictly.find("set server.tls_min = \"TLS1.2\" at the server"), strictly.npos) << strictly;
  }
}

TEST_F(Tls, ResumesASessionOfTheClient) {
  const auto own = server();
  TlsClient client(by_pin());
  std::size_t bytes[2];
  for (std::size_t& sent : bytes) {
    const Filter here = client.connect("127.0.0.1"), there = own->accept();
    sent = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (auto [from, to] : {std::pair(here.get(), there.get()), std::pair(there.get(), here.get())}) {
        const std::vector<std::byte> copy(from->outgoing().begin(), from->outgoing().end());
        from->sent(copy.size());
        moved = moved || !copy.empty();
        sent += from == there.get() ? copy.size() : 0;
        ASSERT_TRUE(to->feed(copy));
      }
    }
    ASSERT_TRUE(here->ready() && there->ready());
  }
  EXPECT_LT(bytes[1] + 500, bytes[0]) << "no certificates the second time";
}

TEST_F(Tls, AcceptsOnlyClientCertificatesOfItsAuthorityIfRequired) {
  const auto place = folder_.path() / "authority", other = make("other", std::chrono::hours(1));
  make_client_certificate(place, place, "a", std::chrono::hours(1));
  make_client_certificate(other, other, "a", std::chrono::hours(1));
  TlsServer asks(place / "server.pem", place / "server.key", kTestTls, place / "ca.pem");
  // The client hears of a rejection after its own end is ready: an alert comes in place of the first bytes.
  const auto trouble_with = [&](TlsServer& to, const ClientCertificate& own) {
    TlsClient client(by_pin(), TlsVersion::k13, own);
    const Filter here = client.connect("127.0.0.1"), there = to.accept();
    std::string trouble = carry(*here, *there);
    if (there->ready()) {
      EXPECT_TRUE(here->write(as_bytes_of("hello")));
      trouble += carry(*here, *there);
      EXPECT_EQ(read_all(*there), "hello");
    }
    return trouble;
  };
  EXPECT_EQ(trouble_with(asks, certificate_in(place)), "");
  EXPECT_NE(trouble_with(asks, {}).find("sent no certificate"), std::string::npos) << trouble_with(asks, {});
  const std::string foreign = trouble_with(asks, certificate_in(other));
  EXPECT_NE(foreign.find("the client's certificate is not trusted"), std::string::npos) << foreign;
  const std::string servers = trouble_with(asks, {place / "server.pem", place / "server.key"});
  EXPECT_NE(servers, "") << "a server's certificate is not a client's";
  EXPECT_EQ(trouble_with(*server(), certificate_in(place)), "") << "the server requests none";
  EXPECT_EQ(certificate_in(folder_.path()).certificate, "");
  EXPECT_THROW(TlsServer(place / "server.pem", place / "server.key", TlsVersion::k13, place / "absent.pem"),
               std::invalid_argument);
}

TEST_F(Tls, EndsAConnectionWithTooManyKeyUpdates) {
  const auto one = server();
  const Filter there = one->accept();
  const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl(SSL_new(context.get()));
  BIO *const in = BIO_new(BIO_s_mem()), *const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_connect_state(ssl.get());
  const auto exchange = [&]() -> Status {
    std::array<std::byte, 4096> bytes;
    Status status = Unit{};
    for (int got = BIO_read(out, bytes.data(), bytes.size()); got > 0 && status;
         got = BIO_read(out, bytes.data(), bytes.size()))
      status = there->feed(std::span(bytes).first(static_cast<std::size_t>(got)));
    const auto answer = there->outgoing();
    if (!answer.empty()) BIO_write(in, answer.data(), static_cast<int>(answer.size()));
    there->sent(answer.size());
    char plain = 0;
    SSL_read(ssl.get(), &plain, 1);
    return status;
  };
  for (int k = 0; k < 10 && !there->ready(); ++k) {
    SSL_do_handshake(ssl.get());
    ASSERT_TRUE(exchange());
  }
  ASSERT_TRUE(there->ready());
  const auto change_keys = [&] {
    EXPECT_EQ(SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED), 1);
    EXPECT_EQ(SSL_do_handshake(ssl.get()), 1);
    return exchange();
  };
  for (int k = 0; k < 20; ++k) ASSERT_TRUE(change_keys()) << "a few are good";
  ASSERT_EQ(SSL_write(ssl.get(), "word", 4), 4);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(read_all(*there), "word");
  for (int k = 0; k < 200; ++k) {  // all of them arrive at once
    EXPECT_EQ(SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    EXPECT_EQ(SSL_do_handshake(ssl.get()), 1);
  }
  std::vector<std::byte> flood(64 * 1024);
  flood.resize(static_cast<std::size_t>(BIO_read(out, flood.data(), static_cast<int>(flood.size()))));
  const Status status = there->feed(flood);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the client updates its keys too often (33 times)");
}

TEST_F(Tls, ReportsGarbageAsAnError) {
  const auto own = server();
  Random random(7, "garbage");
  for (int k = 0; k < 300; ++k) {
    const Filter there = own->accept();
    std::vector<std::byte> garbage(1 + random.below(600));
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random.below(256));
    if (k % 3 == 0) garbage[0] = std::byte{0x16};  // like the start of a handshake record
    const Status status = there->feed(garbage);
    EXPECT_FALSE(there->ready());
    EXPECT_EQ(read_all(*there), "");
    if (!status) {
      EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
    }
  }
}

// Replaces bytes of a server's handshake, or sends random ones instead.
TEST_F(Tls, AClientSurvivesAHostileServer) {
  const auto own = server();
  TlsClient client(by_pin());
  Random random(11, "hostile");
  for (int k = 0; k < 600; ++k) {
    const Filter here = client.connect("127.0.0.1"), there = own->accept();
    bool was_changed = false;
    for (int step = 0; step < 20 && !(here->ready() && there->ready()); ++step) {
      (void)there->feed(std::vector(here->outgoing().begin(), here->outgoing().end()));
      here->sent(here->outgoing().size());
      std::vector<std::byte> answer(there->outgoing().begin(), there->outgoing().end());
      there->sent(answer.size());
      if (!answer.empty() && random.below(2) == 0) {
        was_changed = true;
        if (random.below(4) == 0) answer.resize(1 + random.below(answer.size()));
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
          answer[random.below(answer.size())] = static_cast<std::byte>(random.below(256));
        if (random.below(8) == 0)
          for (std::byte& byte : answer) byte = static_cast<std::byte>(random.below(256));
      }
      const Status status = here->feed(answer);
      if (!status) {
        EXPECT_EQ(status.error().message.find('\n'), std::string::npos) << status.error().message;
        EXPECT_FALSE(here->feed(answer)) << "an error is final";
        break;
      }
    }
    EXPECT_EQ(read_all(*here), "");
    EXPECT_TRUE(was_changed || (here->ready() && there->ready()));
  }
}

TEST_F(Tls, NamesInvalidFiles) {
  const auto place = folder_.path() / "authority";
  std::filesystem::permissions(place / "server.key", std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THROW(server(), std::invalid_argument) << "others may read the key";
  EXPECT_THROW(TlsServer("absent.pem", "absent.key"), std::invalid_argument);
  EXPECT_THROW(TlsClient({folder_.path() / "absent.pem", ""}), std::invalid_argument);
}

}  // namespace
}  // namespace gradwire
