// The bytes that a client with a folder for its state writes in a round.
#include <gtest/gtest.h>
#include <string>

#include "base/random.h"
#include "config/experiment_file.h"
#include "fl_client/client_journal.h"
#include "fl_client/worker.h"
#include "fl_server/plan_of_joins.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/scatter.h"
#include "rounds/runtime.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kDim = 2410;

// Counts the bytes that reach a disk.
class CountingDisk final : public Disk {
 public:
  std::uint64_t bytes = 0;

  Result<std::vector<std::string>> list() override { return disk_.list(); }
  Result<std::string> read(const std::string& name) override { return disk_.read(name); }
  Status write(const std::string& name, Segments segments) override {
    count(segments);
    return disk_.write(name, segments);
  }
  Status append(const std::string& name, Segments segments) override {
    count(segments);
    return disk_.append(name, segments);
  }
  Status sync(const std::string& name) override { return disk_.sync(name); }
  Status sync_folder() override { return disk_.sync_folder(); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status remove(const std::string& name) override { return disk_.remove(name); }

 private:
  void count(Segments segments) {
    for (const std::string_view segment : segments) bytes += segment.size();
  }
  SimulatedDisk disk_;
};

// A client that answers every request, and whose server uses every answer.
class AnsweringClient {
 public:
  explicit AnsweringClient(const std::string& algorithm)
      : plan_(
            plan_of_start(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(kDim) +
                                               "\n[clients]\ncount = 1\n[algorithm]\n" + algorithm,
                                           "t.toml")
                              .experiment,
                          {})),
        codec_(codec_context(*make_run_context<double>(plan_, Role::kServer), {})),
        journal_(disk_, {}),
        worker_(make_worker(plan_, {}, 0, {.journal = &journal_, .run = start_frame(plan_, 1)})) {}

  void answer(std::uint32_t rounds) {
    Random random(1, "model");
    Vec<double> x(kDim);
    for (const std::uint32_t end = round_ + rounds; round_ < end; ++round_) {
      random.normals(x);
      const Downlink<double> body{round_, 0, {Payload<double>::dense(x)}};
      Request<double> request;
      request.request_id = round_ + 1;
      request.committed = round_;
      request.body = &body;
      const auto encoded = codec_.encode_body(body);
      const Encoded message = codec_.encode(request, encoded.get(), nullptr);
      const auto prefix = read_prefix(message.prefix, worker_->max_payload());
      ASSERT_TRUE(prefix);
      const auto places = worker_->receive_head(*prefix, std::as_bytes(std::span(message.header)));
      ASSERT_TRUE(places && scatter(message.sections, *places));
      ASSERT_TRUE(worker_->receive_payload() && worker_->take_up(false));
      worker_->compute();
      ASSERT_NE(worker_->answer(), nullptr);
      worker_->answer_sent();
      worker_->put_away();
    }
  }
  std::uint64_t bytes_on_disk() const { return disk_.bytes; }

 private:
  const RunPlan plan_;
  Codec<double> codec_;
  CountingDisk disk_;
  ClientJournal journal_;
  const std::unique_ptr<Worker> worker_;
  std::uint32_t round_ = 0;
};

TEST(StateBytes, AreFewForAnAnswerWithFewValues) {
  constexpr std::uint32_t kManyRounds = 6000;  // with snapshots
  AnsweringClient client("name = \"ef21\"\ncompressor = \"topk:k=1%\"\nstep_size = 0.1\n");
  client.answer(2);
  const std::uint64_t before = client.bytes_on_disk();
  client.answer(1);
  EXPECT_LE(client.bytes_on_disk() - before, 600u) << "a record";
  client.answer(kManyRounds);
  EXPECT_LE(client.bytes_on_disk() - before, 600u * (kManyRounds + 1)) << "records and snapshots";
}

}  // namespace
}  // namespace gradwire
