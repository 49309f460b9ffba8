// clients.csv: loss and accuracy of each client at an evaluation (docs/reference/results.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/sections.h"
#include "rounds/evaluation.h"
#include "storage/disk.h"

namespace gradwire {

inline constexpr const char* kClientsFile = "clients.csv";

struct DescribedClient {
  std::string name = {};      // empty if the client has none
  std::uint64_t samples = 0;  // for training
};

class ClientsFile {
 public:
  // With kAll, keeps the lines that an earlier process wrote for rounds before `first_round`; otherwise
  // removes the file. `describe` is called for the clients of each line. Throws std::runtime_error. REQUIRES:
  // `metrics` is not kAuto.
  using Describe = std::function<DescribedClient(std::uint32_t client)>;
  ClientsFile(const std::filesystem::path& file, ClientMetrics metrics, std::uint32_t first_round,
              Describe describe);
  void describe_by(Describe describe) { describe_ = std::move(describe); }
  // Returns the function for LoopHooks::on_clients. Empty if the file needs no replies.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> writer();
  // With kLast, writes the replies of the last evaluation.
  void finish();

 private:
  std::string lines(std::uint32_t round, std::span<const ClientEvaluation> answers) const;

  const std::shared_ptr<Disk> disk_;
  const std::string name_;
  const ClientMetrics metrics_;
  Describe describe_;
  std::uint32_t last_round_ = 0;
  std::vector<ClientEvaluation> last_;  // with kLast
};

}  // namespace gradwire
