// A client that reads its data needs little more memory than it keeps for them.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/random.h"
#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_client/client_session.h"
#include "fl_server/plan_of_joins.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"
#include "samples/local_problem.h"
#include "tests/support/allocations.h"
#include "tests/support/data_files.h"
#include "tests/support/session_frames.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kReadRows = 20'000, kReadFeatures = 123;
constexpr std::size_t kMessageBytes =
    64 * 1024;  // the settings of a Start are parsed while the rows are there

// Returns a text like a9a: about 14 of 123 features in a row.
std::string libsvm_text() {
  Random random(1, "samples");
  std::string text;
  for (std::uint32_t r = 0; r < kReadRows; ++r) {
    text += random.below(4) == 0 ? "+1" : "-1";
    for (std::uint32_t j = 1; j <= kReadFeatures; ++j)
      if (j == kReadFeatures || random.below(9) == 0) text += " " + std::to_string(j) + ":0.7";
    text += "\n";
  }
  return text;
}

struct Memory {
  std::size_t peak = 0, kept = 0;  // bytes, from the Welcome to the end of the Start
};

// Lets a client read its data and make its oracle.
Memory memory_of(const std::string& data, const std::string& precision) {
  const RunPlan plan =
      plan_of_start(parse_experiment("precision = \"" + precision +
                                         "\"\n[problem]\nkind = \"logistic\"\ndata = \"a9a\"\n"
                                         "[clients]\ncount = 1\n"
                                         "[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                                     "t.toml")
                        .experiment,
                    {.columns = kReadFeatures, .labels = {-1, 1}});
  ClientSession session({"name", 1, client_data(parse_data_choice(data)), {}}, nullptr);
  session.begin_connection({});
  const auto take = [&session](const std::string& frame) {
    const auto bytes = std::as_bytes(std::span(frame));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), 0);
    ASSERT_TRUE(prefix);
    EXPECT_FALSE(session.take_head(*prefix, bytes.subspan(kPrefixBytes)));
  };
  wire::Welcome welcome;
  welcome.set_client(0);
  welcome.set_heartbeat_ms(1000);
  welcome.set_experiment(pack_experiment(plan.experiment));
  const std::string welcome_frame = control_frame(FrameType::kWelcome, welcome), start = start_frame(plan, 1);
  std::vector<std::string> sent;
  send_outgoing(session, sent);
  allocations::reset();
  const std::size_t before = allocations::live;
  take(welcome_frame);
  take(start);
  return {allocations::peak - before, allocations::live - before};
}

TEST(ReadingMemory, IsAtMostHalfMoreThanTheRowsOfALibsvmFile) {
  const TemporaryFolder folder;
  const std::string text = libsvm_text(), file = folder.write("rows.svm", text);
  for (const char* precision : {"fp64", "fp32"}) {
    const Memory memory = memory_of(file, precision);
    EXPECT_LE(memory.peak, memory.kept * 3 / 2 + kMessageBytes)
        << precision << ": peak " << memory.peak << " bytes, kept " << memory.kept << " bytes of "
        << std::count(text.begin(), text.end(), ':') << " values";
  }
}

}  // namespace
}  // namespace gradwire
