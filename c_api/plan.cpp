#include "c_api/plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>

#include "base/config_error.h"
#include "c_api/dry_server.h"
#include "config/settings.h"

namespace gradwire {
namespace {

// Allowed for names and texts that are longer than those of the dry run.
constexpr std::uint64_t kReserveBytes = 8 * 1024;
constexpr std::uint64_t kLeastBytes = 64 * 1024, kMostBytes = std::uint64_t{1} << 40;

// Returns the plan of the run, with some step sizes.
RunPlan run_plan(const gradwire_plan& plan) {
  if (plan.precision != 32 && plan.precision != 64)
    throw BadInput("gradwire_plan.precision is " + std::to_string(plan.precision) + "; use 32 or 64");
  if (plan.algorithm == nullptr) throw BadInput("gradwire_plan.algorithm is NULL");
  Settings settings = {{"name", "plan"},
                       {"problem.kind", "custom"},
                       {"problem.dim", std::to_string(plan.dim)},
                       {"precision", plan.precision == 32 ? "fp32" : "fp64"},
                       {"clients.count", std::to_string(std::max(plan.clients, 1u))},
                       {"server.zstd", "off"},
                       {"algorithm.name", plan.algorithm}};
  if (plan.compressor != nullptr) settings.emplace_back("algorithm.compressor", plan.compressor);
  if (plan.batch > 0) settings.emplace_back("algorithm.batch", std::to_string(plan.batch));
  // Algorithms have one of these step sizes, or both. The error of the last attempt is the best one.
  std::string why;
  for (const std::initializer_list<const char*> steps :
       {std::initializer_list<const char*>{"step_size", "local_step_size"},
        {"local_step_size"},
        {"step_size"}}) {
    Settings with_steps = settings;
    for (const char* const step : steps) with_steps.emplace_back(std::string("algorithm.") + step, "0.01");
    try {
      return plan_of_start(experiment_of(with_steps), {});
    } catch (const ConfigError& error) {
      why = error.key() + ": " + error.what();
    }
  }
  throw BadInput("gradwire_plan: " + why);
}

int32_t any_gradient(size_t d, double* loss, auto* gradient) {
  for (std::size_t j = 0; j < d; ++j)
    gradient[j] = 1 / static_cast<std::remove_pointer_t<decltype(gradient)>>(j + 1);
  *loss = 1;
  return 0;
}

// Runs a client in a region of this size. Returns the bytes that it used, or nullopt if they are not enough.
std::optional<std::uint64_t> try_with(const gradwire_plan& plan, DryServer& server, std::uint64_t bytes) {
  const std::unique_ptr<void, decltype(&std::free)> region(std::malloc(bytes), &std::free);
  if (region == nullptr) throw std::bad_alloc();
  gradwire_options options{};
  options.struct_size = sizeof options;
  options.flags = GRADWIRE_NO_THREADS;
  options.give_up_after_ms = 1;  // the server connects once
  options.server = "127.0.0.1:1";
  options.id = "dry-run";
  options.connect = [](void* user, const char*) { return static_cast<DryServer*>(user)->connect(); };
  options.connect_user = &server;
  options.memory = region.get();
  options.memory_bytes = bytes;
  gradwire_oracle oracle{};
  oracle.struct_size = sizeof oracle;
  oracle.sample_count = std::max<std::uint64_t>(plan.sample_count, 1);
  oracle.gradient_f32 = [](void*, const float*, size_t d, const uint32_t*, size_t, float* gradient,
                           double* loss) { return any_gradient(d, loss, gradient); };
  oracle.gradient_f64 = [](void*, const double*, size_t d, const uint32_t*, size_t, double* gradient,
                           double* loss) { return any_gradient(d, loss, gradient); };
  gradwire_client* made = nullptr;
  std::array<char, 300> why{};
  gradwire_status status = gradwire_create(&options, &oracle, &made, why.data(), why.size());
  const std::unique_ptr<gradwire_client, decltype(&gradwire_destroy)> client(made, &gradwire_destroy);
  gradwire_wait next{};
  next.struct_size = sizeof next;
  while (status == GRADWIRE_OK) {
    status = gradwire_step(client.get(), &next);
    server.step();
  }
  if (status == GRADWIRE_E_MEMORY) return std::nullopt;
  if (status != GRADWIRE_DONE)
    throw BadInput("the dry run failed: " +
                   std::string(client == nullptr ? why.data() : gradwire_message(client.get())));
  gradwire_progress progress{};
  progress.struct_size = sizeof progress;
  gradwire_progress_of(client.get(), &progress);
  return progress.memory_peak;
}

}  // namespace

std::uint64_t memory_needed(const gradwire_plan& plan) {
  const RunPlan run = run_plan(plan);
  for (std::uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2)
    if (const auto used = try_with(plan, *make_dry_server(run), bytes)) return *used + kReserveBytes;
  throw std::bad_alloc();
}

}  // namespace gradwire
