// The oldest TLS version that the servers of tests allow.
#pragma once

#include "proto/security/tls.h"

namespace gradwire {

#ifdef GRADWIRE_TEST_MBEDTLS  // version 2.28 has no TLS 1.3
inline constexpr TlsVersion kTestTls = TlsVersion::k12;
#else
inline constexpr TlsVersion kTestTls = TlsVersion::k13;
#endif

}  // namespace gradwire
