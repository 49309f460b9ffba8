#include "fl_server/plan_of_joins.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/make_plan.h"

namespace gradwire {
namespace {

// The number of vectors of the model's length that a server needs at least, for any algorithm.
constexpr double kVectorsOfAServer = 3;
// The memory that a feature needs while sums become a map (engine/data/normalize.h), and its map as text.
constexpr double kBytesOfSummedFeature = 128;

void unite(DataSchema& schema, const ClientInfo& info) {
  schema.columns = std::max<std::size_t>(schema.columns, info.columns);
  std::vector<double> merged;
  std::ranges::set_union(schema.labels, info.labels, std::back_inserter(merged));
  schema.labels = std::move(merged);
  schema.alphabet = unite_alphabets(schema.alphabet, info.alphabet);
}

DataSchema schema_of(const ClientTable& table) {
  DataSchema schema;
  for (ClientId client = 0; client < table.size(); ++client) unite(schema, table.info(client));
  return schema;
}

// Returns nullopt if a client does not know its constants.
std::optional<Smoothness> smoothness_of(const ProblemSpec& spec, const ClientTable& table,
                                        std::span<const double> weights) {
  std::vector<ClientSmoothness> clients;
  for (ClientId client = 0; client < table.size(); ++client) {
    const ClientInfo& info = table.info(client);
    if (!info.smoothness) return std::nullopt;
    // If a client does not report the constants of its samples, L_i times the number of samples bounds them.
    const double worst = *info.smoothness * static_cast<double>(info.sample_count);
    clients.push_back({.L_i = *info.smoothness,
                       .mu_i = info.convexity.value_or(0),
                       .L_s = info.sample_smoothness.value_or(worst),
                       .L_sample_max = info.sample_smoothness_max.value_or(worst)});
  }
  return smoothness_from_clients(spec, clients, weights);
}

ClientsData data_of(const ProblemSpec& spec, const ClientTable& table) {
  ClientsData data;
  data.lacks_clients = table.joined_count() < table.size();
  data.schema = schema_of(table);
  for (ClientId client = 0; client < table.size(); ++client)
    data.samples.push_back(table.info(client).sample_count);
  data.smoothness = [&spec, &table](RunPlan& plan) {
    return plan.needed.any() ? smoothness_of(spec, table, plan.weights) : std::nullopt;
  };
  return data;
}

// Returns the memory that this process may use: the least of the machine's memory, its control group's limit
// and its own limit.
double memory_bytes() {
  double bytes = HUGE_VAL;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) bytes = static_cast<double>(pages) * static_cast<double>(page_bytes);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  std::ifstream group("/sys/fs/cgroup/memory.max");  // "max" is not a number
  if (double most = 0; group >> most) bytes = std::min(bytes, most);
  return bytes;
}

std::string list_of(const std::vector<double>& labels) {
  const std::string text = count_and_list(labels);
  return text.substr(text.find(' ') + 1);
}

// Returns a client's name for messages; many names begin with "client".
std::string called(const ClientInfo& info) {
  return (info.name.starts_with("client") ? "'" : "client '") + info.name + "'";
}

std::string labels_of_both(const ClientInfo& a, const ClientInfo& b) {
  return called(a) + " has the labels " + list_of(a.labels) + ", " + called(b) + " has " + list_of(b.labels) +
         "; if they mean the same classes, use the same labels in all data";
}

// Returns a text about two clients whose labels differ, for an error about the labels. Empty if there are
// none.
std::string label_owners(const ProblemSpec& spec, const ClientTable& table) {
  ClientId client = 0;
  while (client < table.size() && !table.joined(client)) ++client;
  if (!spec.info().has_classes || client == table.size()) return "";
  const ClientInfo& first = table.info(client);
  for (++client; client < table.size(); ++client)
    if (table.joined(client) && table.info(client).labels != first.labels)
      return ": " + labels_of_both(first, table.info(client));
  return "";
}

// Returns the error of check_schema(), or "" if there is none.
std::string schema_trouble(const ProblemSpec& spec, const DataSchema& schema) {
  try {
    check_schema(spec, schema);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Returns an error if the client's table has not the columns of those before.
Status check_columns(const ClientInfo& info, std::uint32_t clients, const OtherClient& other) {
  for (ClientId client = 0; info.table_hash && client < clients; ++client) {
    const ClientInfo* const before = other(client);
    if (before == nullptr || !before->table_hash) continue;
    if (before->table_hash == info.table_hash) return Unit{};
    const std::string both =
        before->columns == info.columns
            ? "other names, or another order"
            : std::to_string(info.columns) + " features, not " + std::to_string(before->columns);
    return Error{"the columns of its table are not those of " + called(*before) +
                 ", which joined before: " + both +
                 "; the log of each client lists its columns; give both tables the same columns with " +
                 "the same names in the same order"};
  }
  return Unit{};
}

// Returns an error if the problem cannot have the client's labels together with those of the clients before.
Status check_labels(const ClientInfo& info, const ProblemSpec& spec, std::uint32_t clients,
                    const OtherClient& other) {
  DataSchema before, own;
  const ClientInfo* differing = nullptr;
  for (ClientId client = 0; client < clients && !std::ranges::includes(before.labels, info.labels);
       ++client) {
    const ClientInfo* const joined = other ? other(client) : nullptr;
    if (joined == nullptr) continue;
    unite(before, *joined);
    if (differing == nullptr && joined->labels != info.labels) differing = joined;
  }
  if (std::ranges::includes(before.labels, info.labels)) return Unit{};
  unite(own, info);
  DataSchema all = before;
  unite(all, info);
  own.columns = std::max<std::size_t>(all.columns, 1);
  const std::string trouble = schema_trouble(spec, all);
  if (trouble.empty()) return Unit{};
  // More labels than two are too many if they are refused: no client can add what is missing.
  std::string alone = schema_trouble(spec, own);
  if (info.labels.size() > 2 && !alone.empty()) return Error{std::move(alone)};
  // If both have too few labels, the experiment is wrong in another way, and the plan says how.
  if (differing == nullptr || (!alone.empty() && !schema_trouble(spec, before).empty())) return Unit{};
  return Error{trouble + ": its labels are " + list_of(info.labels) + ", those of " + called(*differing) +
               ", which joined before, are " + list_of(differing->labels) +
               "; if they mean the same classes, use the same labels in all data"};
}

// Returns a warning if one client has a class -1 and another one has a class 0, but none has both. Otherwise
// returns an empty string.
std::string mixed_signs(const ProblemSpec& spec, const ClientTable& table) {
  const ClientInfo* has_minus = nullptr;
  const ClientInfo* has_zero = nullptr;
  for (ClientId client = 0; spec.info().has_classes && client < table.size(); ++client) {
    if (!table.joined(client)) continue;
    const ClientInfo& info = table.info(client);
    const bool minus = std::ranges::binary_search(info.labels, -1.0),
               zero = std::ranges::binary_search(info.labels, 0.0);
    if (minus && zero) return "";
    if (minus && has_minus == nullptr) has_minus = &info;
    if (zero && has_zero == nullptr) has_zero = &info;
  }
  if (has_minus == nullptr || has_zero == nullptr) return "";
  return "-1 and 0 are two classes here: " + labels_of_both(*has_minus, *has_zero);
}

// Returns a warning if two clients have the same samples, by their hashes, else "".
std::string same_samples(const ExperimentSpec& experiment, const ClientTable& table) {
  if (experiment.clients.replication > 1) return "";  // then that is what the experiment asks for
  std::map<std::uint64_t, ClientId> owners;
  for (ClientId client = 0; client < table.size(); ++client) {
    const ClientInfo& info = table.info(client);
    if (!info.data_hash || info.sample_count == 0) continue;
    const auto [owner, is_first] = owners.try_emplace(*info.data_hash, client);
    if (is_first) continue;
    return called(table.info(owner->second)) + " and " + called(info) +
           " have the same samples, which then count twice; was one started with the file of the other?";
  }
  return "";
}

// Returns a warning about the clients that lack labels, or "".
std::string lacking_labels(const ProblemSpec& spec, const DataSchema& schema, const ClientTable& table) {
  constexpr std::size_t kNamed = 5;
  std::string clients;
  std::size_t lacking = 0;
  for (ClientId client = 0; spec.info().has_classes && client < table.size(); ++client) {
    if (!table.joined(client)) continue;
    std::vector<double> lacks;
    std::ranges::set_difference(schema.labels, table.info(client).labels, std::back_inserter(lacks));
    if (lacks.empty() || ++lacking > kNamed) continue;
    clients += (clients.empty() ? "" : "; ") + table.info(client).name + " lacks " + list_of(lacks);
  }
  if (lacking == 0) return "";
  if (lacking > kNamed) clients += "; " + std::to_string(lacking - kNamed) + " more clients lack some";
  return "not all clients have all labels (" + count_and_list(schema.labels) + "): " + clients +
         "; all clients must give a class the same label (problem.labels numbers texts)";
}

}  // namespace

NeededConstants constants_to_ask(const LoadedExperiment& loaded) {
  const ProblemSpec spec = problem_spec(loaded.experiment);
  const NeededConstants needed = needed_constants(algorithm_spec(loaded.experiment));
  const bool closed_form = spec.info().has_smoothness;
  const std::string kind = "kind " + std::string(spec.info().name);
  if (!needed.smoothness.empty() && !closed_form)
    throw locate(loaded, ConfigError(needed.smoothness,
                                     kind +
                                         " has no closed-form smoothness constants, so clients cannot report "
                                         "them; give a number" +
                                         (spec.info().brings_functions
                                              ? ""
                                              : ", as `gradwire run` estimates it from all data")));
  if (!needed.convexity.empty() && (!closed_form || !(known_convexity(spec) > 0)))
    throw locate(loaded, ConfigError(needed.convexity,
                                     "theory needs strong convexity, but this problem (" + kind +
                                         ") guarantees none without access to all data; give a number, "
                                         "or use regularizer = \"l2\" with logistic or least_squares"));
  return needed;
}

Status check_client(const ClientInfo& info, const ExperimentSpec& experiment, const OtherClient& other) {
  const ProblemSpec spec = problem_spec(experiment);
  if (spec.info().needs_data() && info.sample_count == 0)
    return Error{"its data has no sample for training; add samples, or start it with other data"};
  if (spec.info().brings_functions && info.sample_count == 0)
    return Error{"it has no oracle for problem.kind = \"" + std::string(spec.info().name) +
                 "\"; start a program that brings one (docs/how-to/own_client.md)"};
  const std::string data = "its data has " + std::to_string(info.columns) + " columns, ";
  const RowsData* const rows = rows_of(spec.problem);
  if (rows != nullptr && rows->dim > 0 && info.columns > rows->dim)
    return Error{data + "but problem.dim is " + std::to_string(rows->dim) + "; check its data"};
  std::size_t d = 0;
  try {
    d = model_dim(spec, {info.columns, info.labels, info.alphabet});
  } catch (const std::exception&) {
    // It may fit the data of the others; plan_of_joins() reports an error otherwise. A model has at least one
    // parameter for each feature.
    d = info.columns;
  }
  const double real_bytes = experiment.precision == Precision::kFp32 ? sizeof(float) : sizeof(double);
  const double sums = rows != nullptr && needs_sums(rows->normalize)
                          ? kBytesOfSummedFeature * static_cast<double>(info.columns)
                          : 0;
  if (kVectorsOfAServer * real_bytes * static_cast<double>(d) + sums > memory_bytes())
    return Error{data + "which gives a model of " + std::to_string(d) +
                 " parameters, which do not fit into the server's memory; check its data"};
  const std::uint32_t clients = experiment.clients.count;
  if (Status columns = other ? check_columns(info, clients, other) : Unit{}; !columns) return columns;
  return check_labels(info, spec, clients, other);
}

Status check_abilities(const Abilities& abilities, const ExperimentSpec& experiment, bool begun) {
  const std::string& zstd = experiment.server.zstd;
  if (experiment.precision == Precision::kFp32 && !abilities.fp32)
    return Error{
        "precision is \"fp32\", but this client computes only in fp64; set precision = \"fp64\" at the "
        "server, or start a client with fp32"};
  if (experiment.precision == Precision::kFp64 && !abilities.fp64)
    return Error{
        "precision is \"fp64\", but this client computes only in fp32; set precision = \"fp32\" at the "
        "server, or start a client with fp64"};
  if (experiment.run.kernels == KernelSet::kPortable && !abilities.portable_kernels)
    return Error{
        "run.kernels is \"portable\", but this client has no portable kernels; install the server's release "
        "of the client, or set run.kernels = \"best\" at the server"};
  if (info_of(experiment.problem).brings_functions && !abilities.custom_problems)
    return Error{
        "problem.kind is \"custom\", which this client does not know; install the server's release of the "
        "client"};
  if (!abilities.zstd && zstd != "off" && (begun || zstd != "auto"))
    return Error{(begun ? "the run has begun with server.zstd = \"" : "server.zstd is \"") + zstd +
                 "\", but this client reads no zstd; set server.zstd = \"off\"" +
                 (begun ? " and start the server with --fresh" : " at the server")};
  return Unit{};
}

bool bits_depend_on_kernels(const ExperimentSpec& experiment) {
  return experiment.run.kernels == KernelSet::kBest &&
         (info_of(experiment.problem).is_network ||
          find_algorithm(experiment.algorithm.name).traits.needs_hessian);
}

namespace {

// Turns zstd off if a client does not read it. Returns a line that says so, or "".
std::string turn_off_zstd(ExperimentSpec& experiment, const ClientTable& table) {
  if (experiment.server.zstd != "auto") return "";
  for (ClientId client = 0; client < table.size(); ++client) {
    if (!table.joined(client) || table.info(client).abilities.zstd) continue;
    experiment.server.zstd = "off";
    return "server.zstd = \"auto\" is off in this run, because client " + std::to_string(client) + " '" +
           table.info(client).name + "' reads no zstd";
  }
  return "";
}

}  // namespace

std::string lacking_of_joins(const ExperimentSpec& experiment, const ClientTable& table) {
  const ProblemSpec spec = problem_spec(experiment);
  return schema_trouble(spec, schema_of(table));
}

RunPlan plan_of_joins(const LoadedExperiment& loaded, const ClientTable& table) {
  const ProblemSpec spec = problem_spec(loaded.experiment);
  const ClientsData data = data_of(spec, table);
  try {
    check_schema(spec, data.schema);
  } catch (const DataError& error) {
    throw DataError(error.what() + label_owners(spec, table));
  }
  RunPlan plan = make_plan(loaded, data);
  if (std::string warning = mixed_signs(spec, table); !warning.empty())
    plan.warnings.push_back(std::move(warning));
  else if (std::string lacking = lacking_labels(spec, data.schema, table); !lacking.empty())
    plan.warnings.push_back(std::move(lacking));
  if (std::string warning = turn_off_zstd(plan.experiment, table); !warning.empty())
    plan.warnings.push_back(std::move(warning));
  if (std::string warning = same_samples(loaded.experiment, table); !warning.empty())
    plan.warnings.push_back(std::move(warning));
  if (is_unrestorable(plan.experiment) && !survives_power(plan.experiment))
    plan.warnings.push_back("server.durability = \"process\": the server cannot restore the state of " +
                            plan.experiment.algorithm.name +
                            " clients, so a loss of power at the server or "
                            "a client may end the run permanently; \"power\" or \"auto\" prevents that");
  return plan;
}

RunPlan plan_of_snapshot(const ExperimentSpec& asked, const ExperimentSpec& resolved,
                         const ClientTable& table) {
  const ProblemSpec spec = problem_spec(resolved);
  return make_plan_again(asked, resolved, data_of(spec, table));
}

}  // namespace gradwire
