// Arguments of gradwire.h that cannot be used: each is refused before the first packet.
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "c_api/c_struct.h"
#include "c_api/plan.h"
#include "tests/c_api/c_fixture.h"

namespace gradwire {
namespace {

class CArguments : public ::testing::Test {
 protected:
  CArguments() : oracle(rows.oracle()) {}
  void expect_refusal(const std::string& text) {
    const CClient client(options, oracle);
    EXPECT_EQ(client.status, GRADWIRE_E_ARGUMENT);
    EXPECT_EQ(client.client, nullptr);
    EXPECT_NE(client.message().find(text), std::string::npos) << client.message();
  }

  CallerRows<double> rows{0};
  gradwire_options options = options_for("127.0.0.1:1");
  gradwire_oracle oracle;
};

TEST_F(CArguments, RefusesStructuresWithoutASize) {
  options.struct_size = 0;
  expect_refusal("gradwire_options.struct_size is 0; set it to sizeof(gradwire_options)");
  options = options_for("127.0.0.1:1");
  oracle.struct_size = 8;
  expect_refusal("gradwire_oracle.struct_size is 8");
}

TEST_F(CArguments, RefusesNullPointers) {
  std::array<char, 100> why{};
  gradwire_client* client = nullptr;
  EXPECT_EQ(gradwire_create(nullptr, &oracle, &client, why.data(), why.size()), GRADWIRE_E_ARGUMENT);
  EXPECT_STREQ(why.data(), "gradwire_options is NULL");
  EXPECT_EQ(gradwire_create(&options, nullptr, &client, why.data(), why.size()), GRADWIRE_E_ARGUMENT);
  EXPECT_STREQ(why.data(), "gradwire_oracle is NULL");
  EXPECT_EQ(gradwire_create(&options, &oracle, nullptr, why.data(), why.size()), GRADWIRE_E_ARGUMENT);
  EXPECT_STREQ(why.data(), "out is NULL");
  EXPECT_EQ(gradwire_create(&options, nullptr, &client, nullptr, 0), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_create(&options, nullptr, &client, why.data(), 9), GRADWIRE_E_ARGUMENT);
  EXPECT_STREQ(why.data(), "gradwire") << "cut to the size";
  gradwire_wait next{};
  gradwire_progress progress{};
  gradwire_plan plan{};
  std::uint64_t bytes = 0;
  EXPECT_EQ(gradwire_run(nullptr), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_step(nullptr, &next), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_keep_alive(nullptr), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_progress_of(nullptr, &progress), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_memory_needed(nullptr, &bytes), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_memory_needed(&plan, nullptr), GRADWIRE_E_ARGUMENT);
  EXPECT_STREQ(gradwire_message(nullptr), "");
  gradwire_cancel(nullptr);
  gradwire_destroy(nullptr);
  CClient made(options, oracle);
  EXPECT_EQ(gradwire_step(made.client, nullptr), GRADWIRE_E_ARGUMENT);
  EXPECT_EQ(gradwire_step(made.client, &next), GRADWIRE_E_ARGUMENT) << "its struct_size is 0";
  EXPECT_EQ(gradwire_progress_of(made.client, &progress), GRADWIRE_E_ARGUMENT);
}

TEST_F(CArguments, RefusesOptionsThatCannotBeUsed) {
  options.server = nullptr;
  expect_refusal("server is NULL");
  options.server = "nonsense";
  expect_refusal("--server");
  options.server = "192.0.2.1:7000";
  expect_refusal("is another machine");
  options = options_for("127.0.0.1:1");
  options.id = "";
  expect_refusal("gradwire_options.id is empty");
  options.id = "a\nb";
  expect_refusal("--id");
  options = options_for("127.0.0.1:1");
  options.part = 3;
  options.parts = 3;
  expect_refusal("part 3");
  options = options_for("127.0.0.1:1");
  options.flags = 1u << 20;
  expect_refusal("flag");
  options = options_for("127.0.0.1:1");
  options.memory_bytes = 1;
  expect_refusal("memory is NULL");
}

TEST_F(CArguments, RefusesAnOracleThatCannotBeUsed) {
  oracle.gradient_f64 = nullptr;
  expect_refusal("neither gradient_f32 nor gradient_f64");
  oracle = rows.oracle();
  oracle.sample_count = 0;
  expect_refusal("sample_count is 0");
  oracle = rows.oracle();
  oracle.test_count = 1;
  expect_refusal("score is NULL");
}

TEST_F(CArguments, RefusesARegionThatIsTooSmall) {
  alignas(16) std::array<std::byte, 200> region;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, region.size()}) {
    options.memory = region.data();
    options.memory_bytes = bytes;
    const CClient client(options, oracle);
    EXPECT_EQ(client.status, GRADWIRE_E_MEMORY) << bytes;
    EXPECT_NE(client.message().find("gradwire_options.memory is too small"), std::string::npos)
        << client.message();
  }
}

// A newer program with members that this library does not know, and an older one without the last ones.
TEST_F(CArguments, TakesStructuresOfOtherVersions) {
  struct Newer {
    gradwire_options known;
    std::uint64_t more[4];
  } newer{options, {}};
  newer.known.struct_size = sizeof newer;
  gradwire_client* client = nullptr;
  std::array<char, 200> why{};
  EXPECT_EQ(gradwire_create(&newer.known, &oracle, &client, why.data(), why.size()), GRADWIRE_OK)
      << why.data();
  gradwire_destroy(client);
  newer.more[2] = 1;
  EXPECT_EQ(gradwire_create(&newer.known, &oracle, &client, why.data(), why.size()), GRADWIRE_E_ARGUMENT);
  EXPECT_NE(std::string(why.data()).find("sets members that this library does not know"), std::string::npos);

  // The bytes after those of the older structure are not its own.
  options.memory = &newer;
  options.memory_bytes = 1;
  options.struct_size = offsetof(gradwire_options, memory);
  EXPECT_EQ(gradwire_create(&options, &oracle, &client, why.data(), why.size()), GRADWIRE_OK) << why.data();
  gradwire_progress progress{};
  progress.struct_size = offsetof(gradwire_progress, answered);
  progress.answered = 17;
  EXPECT_EQ(gradwire_progress_of(client, &progress), GRADWIRE_OK);
  EXPECT_EQ(progress.answered, 17u);
  EXPECT_EQ(progress.struct_size, offsetof(gradwire_progress, answered));
  gradwire_destroy(client);
}

TEST_F(CArguments, RefusesPlansThatCannotBe) {
  gradwire_plan plan{};
  plan.struct_size = sizeof plan;
  plan.precision = 64;
  plan.clients = 3;
  plan.dim = 10;
  plan.algorithm = "ef21";
  std::uint64_t bytes = 1;
  for (gradwire_plan bad : {plan, plan, plan, plan, plan}) {
    static int which = 0;
    switch (which++) {
      case 0: bad.precision = 16; break;
      case 1: bad.dim = 0; break;
      case 2: bad.algorithm = "ef99"; break;
      case 3: bad.compressor = "nonsense"; break;
      default: bad.algorithm = nullptr;
    }
    EXPECT_EQ(gradwire_memory_needed(&bad, &bytes), GRADWIRE_E_ARGUMENT) << which;
    EXPECT_EQ(bytes, 0u);
  }
}

// In this program the client's memory is that of malloc(); tests/c_api/library/memory.c tests the library.
TEST(CPlan, RunsEachAlgorithmForACustomProblem) {
  for (const char* algorithm : {"gd", "fedavg", "fedprox", "scaffold", "ef21", "ef21_sgdm", "diana", "marina",
                                "adiana", "dasha", "ef14", "proxskip", "page"})
    for (const std::uint32_t precision : {32u, 64u}) {
      gradwire_plan plan{};
      plan.struct_size = sizeof plan;
      plan.precision = precision;
      plan.clients = 3;
      plan.dim = 50;
      plan.sample_count = 20;
      plan.algorithm = algorithm;
      try {
        EXPECT_GT(memory_needed(plan), 0u);
      } catch (const BadInput& error) {
        ADD_FAILURE() << algorithm << ": " << error.what();
      }
    }
}

TEST(CAbi, IsThatOfTheHeader) {
  EXPECT_EQ(gradwire_abi(), GRADWIRE_ABI);
  EXPECT_STREQ(gradwire_version(), GRADWIRE_VERSION);
}

}  // namespace
}  // namespace gradwire
