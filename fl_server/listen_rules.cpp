#include "fl_server/listen_rules.h"

#include "proto/wire/address.h"

namespace gradwire {

std::string ListenOptions::metrics_address() const {
  return asks_metrics && metrics.empty() ? kMetricsListen : metrics;
}

std::string trouble_of(const ListenOptions& options) {
  const auto address = parse_address(options.listen, AddressUse::kToListen);
  if (options.identity.empty() && !options.insecure && address && !is_loopback(*address))
    return "--listen " + options.listen +
           " is open to other machines: give --identity (gradwire-server init makes one) or --insecure";
  const std::string where = options.metrics_address();
  const auto metrics = parse_address(where, AddressUse::kToListen);
  if (!where.empty() && !metrics)
    return "--metrics " + metrics.error().message + "; FILE.toml goes before --metrics";
  if (!where.empty() && !options.insecure && !is_loopback(*metrics))
    return "--metrics " + where +
           " is open to other machines, in plain text and without a password: use 127.0.0.1 and a "
           "proxy or tunnel with authentication (--insecure, for a server without --identity, permits it)";
  if (!options.identity.empty() && options.insecure)
    return "--insecure is only for servers without --identity";
  return "";
}

void warn_about(const ListenOptions& options, const Log& log) {
  if (options.insecure)
    log(LogLine::warning("--insecure: all traffic is in plain text, and peers are not authenticated"));
}

}  // namespace gradwire
