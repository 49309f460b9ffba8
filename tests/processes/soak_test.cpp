// Tests that the memory and the descriptors of a server do not grow while clients leave abruptly and return
// in every round.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/processes/client_group.h"
#include "tests/processes/process_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kGroups = 10;  // one group leaves in every round

// Returns the minutes of a long test with 1,000 clients, as in GRADWIRE_SOAK_MINUTES=30. 0 means a short
// test.
double minutes_asked() {
  const char* text = std::getenv("GRADWIRE_SOAK_MINUTES");
  return text != nullptr ? std::atof(text) : 0;
}

struct Footprint {
  double seconds = 0;
  std::size_t rounds = 0, deaths = 0, descriptors = 0;
  double rss_mb = 0;
};

// Returns the rise of a least-squares line through the memory of the samples, from the first to the last.
double growth_mb(const std::vector<Footprint>& samples) {
  double t_mean = 0, m_mean = 0, tt = 0, tm = 0;
  const double count = static_cast<double>(samples.size());
  for (const Footprint& s : samples) t_mean += s.seconds / count, m_mean += s.rss_mb / count;
  for (const Footprint& s : samples) {
    tt += (s.seconds - t_mean) * (s.seconds - t_mean);
    tm += (s.seconds - t_mean) * (s.rss_mb - m_mean);
  }
  return tt > 0 ? tm / tt * (samples.back().seconds - samples.front().seconds) : 0;
}

class SoakTest : public ProcessTest {
 protected:
  static std::string config(std::uint32_t clients) {
    return "name = \"soak\"\n[problem]\nkind = \"quadratic\"\ndim = 100\nlambda = 0.1\nheterogeneity = 0.5\n"
           "[clients]\ncount = " +
           std::to_string(clients) +
           "\n[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=5\"\nstep_size = 0.01\n[run]\nrounds = "
           "4000000000\n[server]\ndeadline_ms = 10000\n";
  }
  // Returns the number of evaluated rounds. Every round is evaluated.
  std::size_t rounds() {
    metrics_.clear();
    for (std::string line; std::getline(metrics_, line);) ++rows_;
    return rows_;
  }
  void open_metrics() { metrics_.open(state() / "metrics.csv"); }

  Footprint measure(const Process& server, Clock::time_point start) {
    const std::string proc = "/proc/" + std::to_string(server.pid());
    Footprint sample;
    sample.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    sample.rounds = rounds();
    sample.deaths = deaths_;
    sample.descriptors = static_cast<std::size_t>(std::distance(fs::directory_iterator(proc + "/fd"), {}));
    std::ifstream statm(proc + "/statm");
    std::size_t total = 0, resident = 0;
    statm >> total >> resident;
    sample.rss_mb = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
    return sample;
  }
  static void print(const Footprint& s) {
    std::printf("%8.0f s %8zu rounds %9zu deaths %8.1f MB %7zu descriptors\n", s.seconds, s.rounds, s.deaths,
                s.rss_mb, s.descriptors);
    std::fflush(stdout);
  }

  // Kills and replaces one group in every round. Takes samples until the time is over.
  std::vector<Footprint> churn(const Process& server, std::uint32_t clients, double seconds, double every,
                               double print_every) {
    const std::uint32_t size = clients / kGroups;
    for (std::uint32_t g = 0; g < kGroups; ++g) groups_.emplace_back(address, g * size, size);
    std::vector<Footprint> samples;
    if (!eventually([&] { return fs::exists(state() / "metrics.csv"); })) return samples;
    open_metrics();
    const auto start = Clock::now();
    double next_sample = 0, next_print = 0;
    std::size_t seen = 0;
    for (std::uint32_t turn = 0;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (const std::size_t now = rounds(); now > seen) {
        seen = now;
        ClientGroup& group = groups_[turn++ % kGroups];
        EXPECT_FALSE(group.has_failed());
        group.kill();
        group = ClientGroup(address, (turn - 1) % kGroups * size, size);
        deaths_ += size;
      }
      const double time = std::chrono::duration<double>(Clock::now() - start).count();
      if (time < next_sample) continue;
      next_sample += every;
      samples.push_back(measure(server, start));
      if (time >= next_print) {
        print(samples.back());
        next_print += print_every;
      }
      if (time >= seconds || ::kill(server.pid(), 0) != 0) return samples;
    }
  }

  void soak(std::uint32_t clients, double seconds, double every, double print_every, double bound_mb) {
    write_config(config(clients));
    Process server = start_server();
    const std::vector<Footprint> samples = churn(server, clients, seconds, every, print_every);
    ASSERT_GT(samples.size(), 10u) << server.log();
    print(samples.back());
    const std::vector<Footprint> half(samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                                      samples.end());
    std::printf("second half: memory grows by %.2f MB, at most %.0f are allowed\n", growth_mb(half),
                bound_mb);
    EXPECT_LT(growth_mb(half), bound_mb);
    EXPECT_GT(half.back().rounds, half.front().rounds) << "the run makes no progress";
    for (const Footprint& s : half)
      EXPECT_LE(s.descriptors, clients + clients / kGroups + 32) << "after " << s.seconds << " s";
    server.kill(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << read_file(folder.path() / "server.log").substr(0, 2000);
    groups_.clear();
  }

 private:
  std::vector<ClientGroup> groups_;
  std::ifstream metrics_;
  std::size_t rows_ = 0, deaths_ = 0;
};

TEST_F(SoakTest, MemoryAndDescriptorsDoNotGrowWhileATenthOfTheClientsComesAndGoes) {
  if (const double minutes = minutes_asked(); minutes > 0) {
    soak(1000, 60 * minutes, 1, 60, 2 + kSanitizerMb);
  } else {
    soak(40, 3, 0.05, 1, 4 + kSanitizerMb);
  }
}

}  // namespace
}  // namespace gradwire
