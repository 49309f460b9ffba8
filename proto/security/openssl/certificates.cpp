#include "proto/security/certificates.h"

#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <set>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/security/keys.h"
#include "proto/security/openssl/openssl.h"
#include "proto/security/private_file.h"
#include "proto/wire/address.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAuthorityName = "gradwire federation";
constexpr std::chrono::days kAuthorityValidity{3650};
constexpr long kClocksDiffer = 3600;  // in seconds; a client's clock may be slow by this

void free_stack(STACK_OF(X509) * stack) { sk_X509_free(stack); }

void need(bool good, const char* what) {
  if (!good) fail_openssl(what);
}

KeyPtr make_key() {
  KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  need(key != nullptr, "cannot create a P-256 key");
  return key;
}

std::string pem_of(X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  need(out && PEM_write_bio_X509(out.get(), certificate) == 1, "the certificate cannot be written");
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  if (!added) fail_openssl("the certificate cannot contain '" + value + "'");
}

// Returns a certificate without extensions and signature. `issuer` null means self-signed.
CertificatePtr begin_certificate(EVP_PKEY* key, const std::string& name, X509* issuer,
                                 std::chrono::seconds validity) {
  CertificatePtr certificate(X509_new());
  need(certificate != nullptr, "cannot create a certificate");
  std::array<unsigned char, 16> serial{};
  need(RAND_bytes(serial.data(), serial.size()) == 1, "the system provides no random numbers");
  serial[0] &= 0x7f;
  BIGNUM* const number = BN_bin2bn(serial.data(), serial.size(), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kClocksDiffer);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity.count());
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  need(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(name.data()),
                                  static_cast<int>(name.size()), -1, 0) == 1,
       "the certificate cannot have this name");
  X509_set_issuer_name(certificate.get(), issuer != nullptr ? X509_get_subject_name(issuer) : subject);
  return certificate;
}

CertificatePtr load_certificate(const fs::path& file) {
  const BioPtr in(BIO_new_file(file.c_str(), "r"));
  CertificatePtr certificate;
  if (in) certificate.reset(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  if (!certificate) fail_openssl(file.string() + ": is not a certificate in PEM");
  return certificate;
}

KeyPtr load_key(const fs::path& file) {
  if (const Status status = check_private(file); !status) throw std::runtime_error(status.error().message);
  const BioPtr in(BIO_new_file(file.c_str(), "r"));
  KeyPtr key;
  if (in) key.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  if (!key) fail_openssl(file.string() + ": is not a key in PEM");
  return key;
}

// Creates STEM.key and STEM.pem, which contains the new certificate and that of the CA in `folder`.
// `alternatives` are the names and addresses of the certificate; it may be empty.
void make_leaf(const fs::path& folder, const fs::path& stem, const std::string& name, const char* usage,
               const std::string& alternatives, std::chrono::seconds validity) {
  if (!fs::exists(folder / "ca.key"))
    throw std::runtime_error(folder.string() +
                             ": has no certificate authority (ca.key); give the folder that "
                             "gradwire-server init created");
  const CertificatePtr ca = load_certificate(folder / "ca.pem");
  const KeyPtr ca_key = load_key(folder / "ca.key");
  const KeyPtr key = make_key();
  const CertificatePtr certificate = begin_certificate(key.get(), name, ca.get(), validity);
  extend(certificate.get(), ca.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(certificate.get(), ca.get(), NID_key_usage, "critical,digitalSignature");
  extend(certificate.get(), ca.get(), NID_ext_key_usage, usage);
  extend(certificate.get(), ca.get(), NID_authority_key_identifier, "keyid");
  if (!alternatives.empty()) extend(certificate.get(), ca.get(), NID_subject_alt_name, alternatives);
  need(X509_sign(certificate.get(), ca_key.get(), EVP_sha256()) > 0, "the certificate cannot be signed");
  if (X509_verify(certificate.get(), X509_get0_pubkey(ca.get())) != 1)
    fail_openssl((folder / "ca.key").string() + ": is not the key of ca.pem");
  // Replace the key first: a process that reads the files in between refuses the pair.
  replace_private(stem.string() + ".key", gradwire::pem_of(key.get()));
  write_whole(stem.string() + ".pem", pem_of(certificate.get()) + pem_of(ca.get()));
}

}  // namespace

// Uses an existing key: an earlier call may have died before it wrote ca.pem.
void make_authority(const fs::path& folder) {
  const fs::path key_file = folder / "ca.key";
  const bool has_key = fs::exists(key_file);
  const KeyPtr key = has_key ? load_key(key_file) : make_key();
  const CertificatePtr ca = begin_certificate(key.get(), kAuthorityName, nullptr, kAuthorityValidity);
  extend(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  need(X509_sign(ca.get(), key.get(), EVP_sha256()) > 0, "the certificate cannot be signed");
  if (!has_key) create_private(key_file, pem_of(key.get()));
  write_whole(folder / "ca.pem", pem_of(ca.get()));
}

void make_server_certificate(const fs::path& folder, const fs::path& to,
                             const std::vector<std::string>& hosts, std::chrono::seconds validity) {
  std::string names;
  for (const std::string& host : hosts) {
    if (host.empty() || host.find_first_of(", \n") != host.npos)
      throw std::runtime_error("--host '" + host + "' is neither a host name nor an address");
    names += (names.empty() ? "" : ",") + std::string(is_numeric(host) ? "IP:" : "DNS:") + host;
  }
  if (names.empty()) throw std::runtime_error("a server's certificate needs a name; give --host");
  make_leaf(folder, to / "server", "gradwire-server", "serverAuth", names, validity);
}

void make_client_certificate(const fs::path& folder, const fs::path& to, const std::string& name,
                             std::chrono::seconds validity) {
  make_leaf(folder, to / "certificate", name, "clientAuth", "", validity);
}

SignedBy signer_of(const fs::path& pem, const std::string& fingerprint) {
  const BioPtr in(BIO_new_file(pem.c_str(), "r"));
  std::vector<CertificatePtr> chain;
  while (in)
    if (X509* const next = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr); next != nullptr)
      chain.emplace_back(next);
    else
      break;
  if (chain.empty()) fail_openssl(pem.string() + ": is not a certificate in PEM");
  ERR_clear_error();
  const std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>> roots(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  const std::unique_ptr<STACK_OF(X509), OpensslFree<free_stack>> others(sk_X509_new_null());
  need(roots && check && others, "the certificate cannot be checked");
  for (const CertificatePtr& one : chain)
    fingerprint_of(one.get()) == fingerprint ? X509_STORE_add_cert(roots.get(), one.get())
                                             : sk_X509_push(others.get(), one.get());
  need(X509_STORE_CTX_init(check.get(), roots.get(), chain[0].get(), others.get()) == 1,
       "the certificate cannot be checked");
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(check.get()), X509_V_FLAG_NO_CHECK_TIME);
  const bool is_good = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  if (is_good) return SignedBy::kAuthority;
  std::array<char, 64> issuer{};
  X509_NAME_get_text_by_NID(X509_get_issuer_name(chain[0].get()), NID_commonName, issuer.data(),
                            issuer.size());
  return issuer.data() == std::string_view(kAuthorityName) ? SignedBy::kOtherAuthority : SignedBy::kForeign;
}

std::string fingerprint_of(const fs::path& pem) { return fingerprint_of(load_certificate(pem).get()); }

std::vector<std::string> hosts_in_certificate(const fs::path& pem) {
  const CertificatePtr certificate = load_certificate(pem);
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::vector<std::string> hosts;
  for (int k = 0; names && k < sk_GENERAL_NAME_num(names.get()); ++k) {
    int kind = 0;
    const auto* const value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), k), &kind));
    if (kind != GEN_DNS && kind != GEN_IPADD) continue;
    const unsigned char* const bytes = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (kind == GEN_DNS) {
      hosts.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    } else if ((size == 4 || size == 16) &&
               ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text.data(), text.size()) != nullptr) {
      hosts.emplace_back(text.data());
    }
  }
  return hosts;
}

std::vector<std::string> names_of_this_machine() {
  std::set<std::string> names = {"localhost", "127.0.0.1", "::1"};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0 && host[0] != '\0') names.insert(host.data());
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {names.begin(), names.end()};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    const socklen_t size = family == AF_INET    ? sizeof(sockaddr_in)
                           : family == AF_INET6 ? sizeof(sockaddr_in6)
                                                : 0;
    std::array<char, NI_MAXHOST> text{};
    if (size == 0 ||
        ::getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    const std::string address = text.data();
    if (address.find('%') == address.npos) names.insert(address);  // others are valid on one link only
  }
  ::freeifaddrs(all);
  return {names.begin(), names.end()};
}

}  // namespace gradwire
