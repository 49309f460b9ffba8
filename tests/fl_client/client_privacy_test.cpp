// A client reads only the data files that its own command line names, and sends no text from them.
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "engine/data/dataset.h"
#include "fl_client/client_session.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"
#include "samples/local_problem.h"
#include "tests/support/data_files.h"
#include "tests/support/session_frames.h"

namespace gradwire {
namespace {

constexpr const char* kSecret = "Mueller";

class ClientPrivacy : public ::testing::Test {
 protected:
  // Returns the client's Hello and its answer to a Welcome with this [problem]. Sets `trouble` to the error
  // that the client's own user sees.
  std::vector<std::string> answers(const std::string& problem, const DataChoice& data,
                                   std::uint32_t clients = 2) {
    trouble.clear();
    warnings.clear();
    ClientSession session({"name", 1, client_data(data),
                           [this](const LogLine& line) {
                             if (line.level == LogLevel::kWarning) warnings += line.text + "\n";
                           }},
                          nullptr);
    std::vector<std::string> frames;
    session.begin_connection({});
    send_outgoing(session, frames);
    wire::Welcome welcome;
    welcome.set_client(0);
    welcome.set_heartbeat_ms(1000);
    welcome.set_experiment(pack_experiment(
        parse_experiment("[problem]\n" + problem + "\n[clients]\ncount = " + std::to_string(clients) +
                             "\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                         "t.toml")
            .experiment));
    const std::string frame = control_frame(FrameType::kWelcome, welcome);
    const auto bytes = std::as_bytes(std::span(frame));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), 0);
    try {
      session.take_head(*prefix, bytes.subspan(kPrefixBytes));
    } catch (const DataError& error) {
      trouble = error.what();
    }
    send_outgoing(session, frames);
    return frames;
  }
  static FrameType type_of(const std::string& frame) {
    return read_prefix(std::as_bytes(std::span(frame)).first<kPrefixBytes>(), UINT64_MAX)->type;
  }
  template <class Message>
  static Message parsed(const std::string& frame) {
    Message message;
    EXPECT_TRUE(parse_control(std::as_bytes(std::span(frame)).subspan(kPrefixBytes), message));
    return message;
  }
  // Expects that the client did not join, and sent the server neither text nor paths of its files.
  void expect_refused(const std::vector<std::string>& frames, const std::string& why) {
    EXPECT_NE(trouble.find(why), std::string::npos) << trouble;
    ASSERT_EQ(frames.size(), 2u);
    ASSERT_EQ(type_of(frames[1]), FrameType::kError);
    EXPECT_EQ(parsed<wire::ErrorMessage>(frames[1]).message(),
              "its data cannot be used; its own log says why");
  }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
    return (folder.path() / name).string();
  }

  TemporaryFolder folder;
  std::string trouble, warnings;
};

TEST_F(ClientPrivacy, SendsNoTextOfDamagedData) {
  const std::string broken = "1 1:0.5\n1 1:" + std::string(kSecret) + "\n";
  struct Case {
    std::string kind, source, text;
  };
  const std::vector<Case> cases = {
      {"logistic", "libsvm:", broken},
      {"logistic", "libsvm:", std::string(kSecret) + " 1:2\n"},
      {"logistic", "libsvm:", "1 " + std::string(kSecret) + "\n"},
      {"logistic", "csv:", "1,2\n" + std::string(kSecret) + ",2\n"},
      {"mlp", "csv:", "1,2,0\n3," + std::string(kSecret) + "\n"},
      {"logistic", "idx:", std::string(kSecret)},
  };
  for (const Case& c : cases) {
    const std::string path = file("own", c.text);
    const auto frames =
        answers("kind = \"" + c.kind + "\"\ndata = \"" + c.source + "x\"", {c.source + path, {}, ""});
    expect_refused(frames, "own");
    for (const std::string& frame : frames) {
      EXPECT_EQ(frame.find(kSecret), std::string::npos) << c.source;
      EXPECT_EQ(frame.find(folder.path().string()), std::string::npos) << c.source;
    }
  }
}

TEST_F(ClientPrivacy, OpensNoDataFileThatTheServerNames) {
  const std::string path = file("private", "1 1:0.5\n-1 1:" + std::string(kSecret) + "\n");
  const auto frames =
      answers("kind = \"logistic\"\ndata = \"libsvm:" + path + "\"", {"", PartNumber{0, 2}, ""});
  expect_refused(frames, "one that the server names");
  EXPECT_EQ(trouble.find(kSecret), std::string::npos) << "it was read";
}

TEST_F(ClientPrivacy, OpensNoTestFileThatTheServerNames) {
  const std::string own = file("own", "1 1:0.5\n-1 1:1\n1 1:2\n-1 1:3\n");
  const std::string test = file("test", "1 1:0.5\n-1 1:" + std::string(kSecret) + "\n");
  const std::string problem = "kind = \"logistic\"\ndata = \"libsvm:x\"\ntest = \"libsvm:" + test + "\"";
  for (const auto part : {std::optional(PartNumber{0, 2}), std::optional<PartNumber>()}) {
    const auto frames = answers(problem, {"libsvm:" + own, part, ""});
    ASSERT_EQ(frames.size(), 2u) << trouble;
    ASSERT_EQ(type_of(frames[1]), FrameType::kJoin);
    EXPECT_EQ(parsed<wire::Join>(frames[1]).test_count(), 0u);
    EXPECT_NE(warnings.find("--test"), std::string::npos) << "the user hears what to do";
  }
}

TEST_F(ClientPrivacy, MeasuresOnTestDataThatTheClientNames) {
  const std::string own = file("own", "1 1:0.5\n-1 1:1\n1 1:2\n-1 1:3\n");
  const std::string test = file("test", "1 1:0.5\n-1 1:1\n1 1:3\n-1 1:7\n1 1:8\n");
  const std::string problem = "kind = \"logistic\"\ndata = \"libsvm:x\"\ntest = \"libsvm:nowhere\"";
  const auto part = answers(problem, {"libsvm:" + own, PartNumber{0, 2}, test});
  ASSERT_EQ(type_of(part.at(1)), FrameType::kJoin) << trouble;
  EXPECT_EQ(parsed<wire::Join>(part[1]).test_count(), 2u) << "its share";
  const auto whole = answers(problem, {"libsvm:" + own, {}, test});
  ASSERT_EQ(type_of(whole.at(1)), FrameType::kJoin) << trouble;
  EXPECT_EQ(parsed<wire::Join>(whole[1]).test_count(), 5u);
  EXPECT_EQ(warnings, "");
}

TEST_F(ClientPrivacy, RefusesTestDataTogetherWithATestShare) {
  const std::string own = file("own", "1 1:0.5\n-1 1:1\n1 1:2\n-1 1:3\n");
  answers("kind = \"logistic\"\ndata = \"libsvm:x\"\ntest_share = 0.25", {"libsvm:" + own, {}, own});
  EXPECT_NE(trouble.find("problem.test_share"), std::string::npos) << trouble;
}

TEST_F(ClientPrivacy, SendsNoLabelsThatAreNotClasses) {
  const std::string incomes = file("incomes", "1,41250.5\n2,38000.25\n3,99999.5\n");
  for (const char* kind : {"logistic", "mlp"}) {
    const auto frames =
        answers("kind = \"" + std::string(kind) + "\"\ndata = \"csv:x\"", {"csv:" + incomes, {}, ""});
    expect_refused(frames, "are not classes");
  }
  const auto numbers = answers("kind = \"least_squares\"\ndata = \"csv:x\"", {"csv:" + incomes, {}, ""});
  ASSERT_EQ(type_of(numbers.at(1)), FrameType::kJoin) << trouble;
  EXPECT_EQ(parsed<wire::Join>(numbers[1]).labels_size(), 0);
}

}  // namespace
}  // namespace gradwire
