#include "mpi/mpi_ranks.h"

// Only the C functions are used.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <thread>

namespace gradwire {
namespace {

// MPI's counts are ints, so longer messages are sent in pieces of this many bytes.
constexpr std::size_t kPiece = std::size_t{1} << 30;

void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error("MPI: " + std::string(text, static_cast<std::size_t>(length)));
}

// Waits for the requests. A rank that waits inside MPI polls forever, and so blocks the core of a computing
// rank if there are more ranks than cores. This function yields, and sleeps during long waits: for a
// sixteenth of the time it has waited, but at most 200 us, which does not delay a collective of many steps.
void wait(std::span<MPI_Request> requests) {
  using namespace std::chrono_literals;
  const auto begun = std::chrono::steady_clock::now();
  for (int done = 0;;) {
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
    if (done) return;
    const auto waited = std::chrono::steady_clock::now() - begun;
    if (waited > 50us && waited < 1ms) std::this_thread::yield();
    if (waited >= 1ms) std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 16, 200us));
  }
}

// Completes a collective of all ranks, which start(&request) begins.
void complete(const auto& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(start(&request));
  wait({&request, 1});
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    // Other threads compute, but only this one calls MPI.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    if (provided < MPI_THREAD_FUNNELED)
      throw std::runtime_error(
          "MPI: this library does not support threads; use one built with MPI_THREAD_FUNNELED");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &count_));
  }
  ~MpiRanks() override { MPI_Finalize(); }

  unsigned rank() const override { return static_cast<unsigned>(rank_); }
  unsigned count() const override { return static_cast<unsigned>(count_); }

  void all_gather(std::span<const std::byte> mine, RankBytes& all) override {
    // Short messages are sent together with their size.
    ShortMessage own;
    own.size = mine.size();
    if (mine.size() <= own.bytes.size()) std::ranges::copy(mine, own.bytes.begin());
    shorts_.resize(count());
    complete([&](MPI_Request* request) {
      return MPI_Iallgather(&own, sizeof own, MPI_BYTE, shorts_.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD,
                            request);
    });
    std::vector<std::size_t> sizes;
    for (const ShortMessage& of_rank : shorts_) sizes.push_back(of_rank.size);
    all.resize(sizes);
    const std::size_t longest = *std::ranges::max_element(sizes);
    if (longest <= own.bytes.size()) {
      for (unsigned r = 0; r < count(); ++r)
        std::copy_n(shorts_[r].bytes.begin(), sizes[r], all.of(r).begin());
      return;
    }
    std::size_t total = 0;
    for (const std::size_t size : sizes) total += size;
    if (total <= kPiece) {
      std::vector<int> counts, starts;
      for (unsigned r = 0; r < count(); ++r) {
        counts.push_back(static_cast<int>(sizes[r]));
        starts.push_back(static_cast<int>(all.of(r).data() - all.of(0).data()));
      }
      complete([&](MPI_Request* request) {
        return MPI_Iallgatherv(mine.data(), counts[rank()], MPI_BYTE, all.of(0).data(), counts.data(),
                               starts.data(), MPI_BYTE, MPI_COMM_WORLD, request);
      });
      return;
    }
    if (!mine.empty()) std::memcpy(all.of(rank()).data(), mine.data(), mine.size());
    for (unsigned r = 0; r < count(); ++r)
      for (std::size_t at = 0; at < sizes[r]; at += kPiece)
        complete([&](MPI_Request* request) {
          return MPI_Ibcast(all.of(r).data() + at, static_cast<int>(std::min(kPiece, sizes[r] - at)),
                            MPI_BYTE, static_cast<int>(r), MPI_COMM_WORLD, request);
        });
  }

  void exchange(std::span<const std::vector<std::byte>> to, RankBytes& from) override {
    std::vector<std::uint64_t> out(count()), in(count());
    for (unsigned r = 0; r < count(); ++r) out[r] = to[r].size();
    complete([&](MPI_Request* request) {
      return MPI_Ialltoall(out.data(), 1, MPI_UINT64_T, in.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD, request);
    });
    from.resize(std::vector<std::size_t>(in.begin(), in.end()));
    std::vector<MPI_Request> requests;
    const auto in_pieces = [&](unsigned other, std::size_t size, const auto& start) {
      for (std::size_t at = 0; at < size; at += kPiece)
        check(start(at, static_cast<int>(std::min(kPiece, size - at)), static_cast<int>(other),
                    &requests.emplace_back()));
    };
    // Each rank begins with a different partner.
    for (unsigned step = 1; step < count(); ++step) {
      const unsigned other = (rank() + count() - step) % count();
      in_pieces(other, from.of(other).size(), [&](std::size_t at, int size, int r, MPI_Request* request) {
        return MPI_Irecv(from.of(other).data() + at, size, MPI_BYTE, r, 0, MPI_COMM_WORLD, request);
      });
    }
    for (unsigned step = 1; step < count(); ++step) {
      const unsigned other = (rank() + step) % count();
      in_pieces(other, to[other].size(), [&](std::size_t at, int size, int r, MPI_Request* request) {
        return MPI_Isend(to[other].data() + at, size, MPI_BYTE, r, 0, MPI_COMM_WORLD, request);
      });
    }
    if (!to[rank()].empty()) std::memcpy(from.of(rank()).data(), to[rank()].data(), to[rank()].size());
    wait(requests);
  }

 private:
  struct ShortMessage {
    std::uint64_t size = 0;
    std::array<std::byte, 120> bytes{};
  };
  int rank_ = 0, count_ = 1;
  std::vector<ShortMessage> shorts_;
};

}  // namespace

bool has_mpi() { return true; }

std::shared_ptr<Ranks> begin_mpi() { return std::make_shared<MpiRanks>(); }

void end_job(int exit_code) {
  int begun = 0;
  if (MPI_Initialized(&begun) == MPI_SUCCESS && begun) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace gradwire
