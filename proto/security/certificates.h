// The certificates of a federation with its own certificate authority (CA), whose key certifies the servers.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace gradwire {

// Creates FOLDER/ca.pem and FOLDER/ca.key, with P-256, valid for ten years. Only the owner may read the key.
// Keeps an existing key, and replaces an existing certificate. Throws std::runtime_error, one line.
void make_authority(const std::filesystem::path& folder);

// Creates TO/server.pem (the certificates of the server and the CA) and TO/server.key, signed by the CA of
// `folder`. The certificate is for these names and addresses, and valid for `validity` from now on. Replaces
// each existing file in one step. Throws std::runtime_error.
void make_server_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                             const std::vector<std::string>& hosts, std::chrono::seconds validity);

// Creates TO/certificate.pem and TO/certificate.key for a client, for servers that request client
// certificates.
void make_client_certificate(const std::filesystem::path& folder, const std::filesystem::path& to,
                             const std::string& name, std::chrono::seconds validity);

// Returns which CA signed a server's certificate (a PEM file with the chain to the CA). kAuthority is the CA
// with this fingerprint, kOtherAuthority another one that gradwire made, kForeign any other. Throws
// std::runtime_error.
enum class SignedBy { kAuthority, kOtherAuthority, kForeign };
SignedBy signer_of(const std::filesystem::path& pem, const std::string& fingerprint);

// Returns the SHA-256 of the first certificate of a PEM file, in base64url. Throws std::runtime_error.
std::string fingerprint_of(const std::filesystem::path& pem);

// Returns the names and addresses in the first certificate of a PEM file. Throws std::runtime_error.
std::vector<std::string> hosts_in_certificate(const std::filesystem::path& pem);

// Returns the names and addresses by which a client may reach this machine.
std::vector<std::string> names_of_this_machine();

}  // namespace gradwire
