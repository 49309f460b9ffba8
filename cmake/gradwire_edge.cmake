# The build of a board's gradwire-client: one static file, small code, and no library that a board can do without. The other
# rooms are as on hosts.
find_package(Threads REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
find_package(ZLIB REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
add_library(PkgConfig::ZSTD STATIC IMPORTED)
set_target_properties(PkgConfig::ZSTD PROPERTIES IMPORTED_LOCATION "${ZSTD_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${ZSTD_INCLUDE_DIR}")
if(GRADWIRE_TLS STREQUAL "mbedtls")
  include(gradwire_mbedtls)
  if(NOT TARGET gradwire_mbedtls)
    message(FATAL_ERROR "mbedTLS or libsodium is missing; run tools/edge-sysroot ${GRADWIRE_EDGE}, or set GRADWIRE_TLS=off")
  endif()
elseif(GRADWIRE_TLS STREQUAL "openssl")
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  find_package(OpenSSL REQUIRED)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ${BUILD_SHARED_LIBS})
add_compile_definitions(GRADWIRE_SMALL)
add_compile_options(-ffunction-sections -fdata-sections -Wno-psabi)  # notes about the ABI of compilers before GCC 7
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")     # the size does not depend on the folder of the sources
if(NOT BUILD_SHARED_LIBS)
  add_link_options(-static -no-pie -Wl,--gc-sections -s)
endif()
if(GRADWIRE_EDGE STREQUAL "riscv64")
  add_compile_options(-msave-restore)  # functions share the code that saves registers
elseif(GRADWIRE_EDGE STREQUAL "aarch64")
  add_link_options(-Wl,-z,max-page-size=16384)  # pages of 64 KB would leave a gap in the file; boards use 4 or 16 KB
endif()
