#include "tests/fuzz/fuzz.h"

namespace gradwire::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"frame", run_frame, frame_seeds},
      {"reply", run_reply, reply_seeds},
      {"request", run_request, request_seeds},
      {"chunks", run_chunks, chunks_seeds},
      {"handshake", run_handshake, handshake_seeds},
      {"messages", run_messages, messages_seeds},
      {"experiment", run_experiment, experiment_seeds},
      {"libsvm", run_libsvm, libsvm_seeds},
      {"csv", run_csv, csv_seeds},
      {"arrays", run_arrays, arrays_seeds},
      {"idx", run_idx, idx_seeds},
      {"numbers", run_numbers, numbers_seeds},
      {"words", run_words, words_seeds},
      {"snapshot", run_snapshot, snapshot_seeds},
      {"journal", run_journal, journal_seeds},
      {"server", run_server, server_seeds},
      {"login", run_login, login_seeds},
      {"relay", run_relay, relay_seeds},
      {"identity", run_identity, identity_seeds},
  };
  return kTargets;
}

}  // namespace gradwire::fuzz
