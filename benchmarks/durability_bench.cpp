// Benchmarks of the cost of making a round durable.
#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "experiments/cli/support/scratch_folder.h"
#include "proto/wire/codec_context.h"
#include "simulation/encoded_link.h"
#include "storage/folder_disk.h"
#include "storage/run_store.h"

namespace gradwire::bench {
namespace {

constexpr std::uint32_t kFewClients = 4;
constexpr double kNetworkBytesPerSecond = 1.25e9;

// Rounds of EF21 with Top-K (K is 1 % of d), of which only the work for the journal is done.
class DurableRounds {
 public:
  DurableRounds(std::size_t d, Durability durability)
      : run_context_(make_run_context(ef21(d), kFewClients, std::vector<float>(d))),
        server_(make_server<float>(run_context_)),
        disk_(folder_.path()),
        journal_(disk_, durability),
        background_(background_thread()),
        durable_(journal_, *background_, codec_context(*run_context_, {}), *server_, progress_, ""),
        durability_(durability) {
    for (std::uint32_t j = 0; j < d; j += 100) indices_.push_back(j);
    values_.assign(indices_.size(), 0.5F);
    Payload<float> payload;
    payload.shape = Shape::kSparse;
    payload.dim = static_cast<std::uint32_t>(d);
    payload.indices = indices_;
    payload.values = values_;
    const CodecContext context = codec_context(*run_context_, {ZstdMode::Kind::kOff, 0});
    Codec<float> codec(context);
    for (ClientId c = 0; c < kFewClients; ++c) {
      Uplink<float> up;
      up.client = c;
      up.parts = {payload};
      links_.push_back(std::make_unique<EncodedLink<float>>(context, true));
      replies_.push_back(links_.back()->up(codec.encode(up), c));
      frames_.push_back(links_.back()->frame());
    }
    durable_.begin();
    RoundRecords<float> records(context);
    for (const auto segment : records.encode({progress_, replies_, true, frames_}, *server_, d * 8))
      as_many_bytes_ += segment;
  }

  struct Seconds {
    double before_apply, commit, plain;
  };
  // Runs one round. Sleeps as long as sending the model to one client takes at 10 Gbit/s, because a real disk
  // also has time between rounds.
  Seconds round() {
    progress_.round += 1;
    Seconds seconds;
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(run_context_->d) *
                                                              sizeof(float) / kNetworkBytesPerSecond));
    seconds.before_apply = seconds_of([this] { durable_.before_apply(); });
    seconds.commit = seconds_of([this] { durable_.commit({progress_, replies_, true, frames_}); });
    const std::string_view bytes = as_many_bytes_;
    seconds.plain = seconds_of([&] {
      const bool written = disk_.append("plain", std::span(&bytes, 1)) &&
                           (durability_ == Durability::kProcess || disk_.sync("plain"));
      if (!written) throw std::runtime_error("the disk fails");
    });
    return seconds;
  }

 private:
  static AlgorithmSpec ef21(std::size_t d) {
    AlgorithmSpec spec;
    spec.name = "ef21";
    spec.compressor = "topk:k=" + std::to_string(std::max<std::size_t>(1, d / 100));
    spec.step_size = "0.1";
    return spec;
  }

  const std::shared_ptr<const RunContext<float>> run_context_;
  const std::unique_ptr<ServerAlgorithm<float>> server_;
  RunProgress progress_;
  ScratchFolder folder_;
  FolderDisk disk_;
  Journal journal_;
  const std::unique_ptr<Background> background_;
  RunStore<float> durable_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::vector<std::unique_ptr<EncodedLink<float>>> links_;
  std::vector<UplinkView<float>> replies_;
  std::vector<Frame> frames_;
  const Durability durability_;
  std::string as_many_bytes_;  // has the length of the record of a round
};

// Disk that keeps nothing, so that only the processor's work remains.
class NoDisk final : public Disk {
 public:
  Result<std::vector<std::string>> list() override { return std::vector<std::string>(); }
  Result<std::string> read(const std::string&) override { return std::string(); }
  Status write(const std::string&, Segments) override { return Unit{}; }
  Status append(const std::string&, Segments) override { return Unit{}; }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return Unit{}; }
  Status rename(const std::string&, const std::string&) override { return Unit{}; }
  Status remove(const std::string&) override { return Unit{}; }
};

// Replies of one round of DCGD, as a server has received them.
class Arrived {
 public:
  Arrived(const std::string& compressor, std::uint32_t d, std::uint32_t clients)
      : run_context_(make_run_context(dcgd(compressor), clients, std::vector<double>(d))),
        context_(codec_context(*run_context_, {ZstdMode::Kind::kOff, 0})),
        server_(make_server<double>(run_context_)),
        records_(context_),
        journal_(disk_, Durability::kProcess) {
    Codec<double> codec(context_);
    Scratch<double> scratch;
    PayloadBuffer<double> store;
    for (ClientId c = 0; c < clients; ++c) {
      Vec<double> v = normal_vector<double>(d, c + 1);
      Uplink<double> up;
      up.client = c;
      up.parts = {compress(context_.compressor, v, {run_context_->seed, c, 0, RngDomain::kCompressor},
                           scratch, store)};
      links_.push_back(std::make_unique<EncodedLink<double>>(context_, true));
      replies_.push_back(links_.back()->up(codec.encode(up), c));
      frames_.push_back(links_.back()->frame());
    }
    progress_.committed.resize(clients);
    if (!journal_.snapshot({})) throw std::logic_error("a disk that keeps nothing fails");
  }

  double seconds(bool as_they_came) {
    const std::span<const Frame> frames =
        as_they_came ? std::span<const Frame>(frames_) : std::span<const Frame>();
    return seconds_of([&] {
      const auto record =
          records_.encode({progress_, replies_, true, frames}, *server_, std::size_t{1} << 40);
      if (!journal_.append(record)) throw std::logic_error("a disk that keeps nothing fails");
    });
  }

 private:
  static AlgorithmSpec dcgd(const std::string& compressor) {
    AlgorithmSpec spec;
    spec.name = "dcgd";
    spec.compressor = compressor;
    spec.step_size = "0.1";
    return spec;
  }

  const std::shared_ptr<const RunContext<double>> run_context_;
  const CodecContext context_;
  const std::unique_ptr<ServerAlgorithm<double>> server_;
  RunProgress progress_;
  RoundRecords<double> records_;
  NoDisk disk_;
  Journal journal_;
  std::vector<std::unique_ptr<EncodedLink<double>>> links_;
  std::vector<UplinkView<double>> replies_;
  std::vector<Frame> frames_;
};

// Returns the seconds that `percent` % of the commits do not exceed.
double percentile(std::vector<double> seconds, std::size_t percent) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[(seconds.size() * percent + 99) / 100 - 1];
}

}  // namespace

void durability_commit(Bench& bench) {
  struct DurabilityCase {
    const char* name;
    std::size_t d;
    Durability durability;
    std::uint32_t commits;
    double target_ms;
  };
  const DurabilityCase cases[] = {{"process d=1e6", 1'000'000, Durability::kProcess, 600, 1},
                                  {"power d=1e4", 10'000, Durability::kPower, 200, 50},
                                  {"power d=1e6", 1'000'000, Durability::kPower, 600, 50},
                                  {"process d=1e8", 100'000'000, Durability::kProcess, 20, 100}};
  for (const DurabilityCase& c : cases) {
    DurableRounds rounds(bench.size(c.d, std::size_t{1000}), c.durability);
    Series median, p99, plain_median, plain_p99, longest_copy;
    for (std::uint32_t k = 0; k < bench.repeats(5); ++k) {
      std::vector<double> seconds, plain;
      double longest = 0;
      for (std::uint32_t commit = 0; commit < bench.size(c.commits, 3U); ++commit) {
        const auto round = rounds.round();
        seconds.push_back(round.commit);
        plain.push_back(round.plain);
        longest = std::max(longest, round.before_apply);
      }
      median.add(percentile(seconds, 50));
      p99.add(percentile(seconds, 99));
      plain_median.add(percentile(plain, 50));
      plain_p99.add(percentile(plain, 99));
      longest_copy.add(longest);
    }
    Row row;
    row.name = std::string("durability/commit ") + c.name;
    row.value = median.times(1e3);
    row.unit = "ms";
    row.versus = Versus{"the same bytes appended to a file", plain_median.times(1e3)};
    row.note = "EF21, Top-1 %, " + std::to_string(kFewClients) +
               " replies, fp32; rounds are as far apart as sending one model takes at 10 Gbit/s";
    bench.row(row);
    row.name += ", 99th percentile";
    row.value = p99.times(1e3);
    row.versus->value = plain_p99.times(1e3);
    row.target = {Target::Of::kValue, c.target_ms};
    row.note = "the same; includes concurrent snapshots";
    bench.row(row);
    if (c.d < 100'000'000) continue;
    Row copy;
    copy.name = std::string("durability/copy ") + c.name;
    copy.value = longest_copy.times(1e3);
    copy.unit = "ms";
    copy.note = "longest wait of a round, at its end, until a snapshot has copied the state";
    bench.row(copy);
  }
}

void durability_record(Bench& bench) {
  constexpr std::uint32_t kReplies = 50;
  const std::uint32_t d = bench.size(100'000u, 100u);
  for (const char* compressor : {"identity", "natural", "qsgd:s=4,p=2"}) {
    Arrived round(compressor, d, kReplies);
    const auto series = interleave(
        bench.repeats(9), {[&] { return round.seconds(true); }, [&] { return round.seconds(false); }});
    Row row;
    row.name = "durability/record " + std::string(compressor);
    row.value = series[0].times(1e3);
    row.unit = "ms";
    row.versus = Versus{"encoding the replies again", series[1].times(1e3)};
    row.target = {Target::Of::kRatio, 1.0 / 3};
    row.note = std::to_string(kReplies) + " replies of d = " + std::to_string(d) +
               " as received, with the checksum of the journal, on a disk that keeps nothing";
    bench.row(row);
  }
}

}  // namespace gradwire::bench
