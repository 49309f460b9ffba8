// The certificates of a federation that has a certificate authority (CA) of its own: who has its key says who
// its servers are.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace gradwire {

// Makes FOLDER/ca.pem and FOLDER/ca.key, which nobody else may read: P-256, valid for ten years. Throws
// std::runtime_error, one line; also when they are there.
void make_authority(const std::filesystem::path& folder);

// Makes TO/server.pem (the server's certificate and the CA's) and TO/server.key, signed by the CA of
// `folder`, for these names and addresses, valid from now for `validity`; takes the place of those that are
// there in one step each. Throws std::runtime_error.
void make_server_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                             const std::vector<std::string>& hosts, std::chrono::seconds validity);

// The same for a client, for servers that ask for certificates: TO/certificate.pem and TO/certificate.key.
void make_client_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                             const std::string& name, std::chrono::seconds validity);

// Whether a server's certificate (a PEM file, with those that lead to the CA) is signed by the CA that has
// this fingerprint. kForeign: it is of an authority that is not of gradwire. Throws std::runtime_error.
enum class SignedBy { kAuthority, kOtherAuthority, kForeign };
SignedBy signer_of(const std::filesystem::path& pem, const std::string& fingerprint);

// SHA-256 of the first certificate of a PEM file, in base64url. Throws std::runtime_error.
std::string fingerprint_of(const std::filesystem::path& pem);

// The names and addresses that the first certificate of a PEM file is for. Throws std::runtime_error.
std::vector<std::string> hosts_in_certificate(const std::filesystem::path& pem);

// The names and addresses that a client may reach this machine under.
std::vector<std::string> names_of_this_machine();

}  // namespace gradwire
