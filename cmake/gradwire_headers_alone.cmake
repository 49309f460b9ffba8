# Target headers_alone, not part of `all`: every header compiles by itself, and twice in one file. Objects are made only so
# that the build knows what is up to date.
file(GLOB_RECURSE gradwire_headers RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
     base/*.h engine/*.h compressors/*.h algorithms/*.h rounds/*.h cluster/*.h proto/*.h fl_client/*.h fl_server/*.h experiments/*.h)
set(alone_sources "")
foreach(header ${gradwire_headers})
  string(MAKE_C_IDENTIFIER "${header}" name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"  // twice\n")
  list(APPEND alone_sources "${source}")
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${alone_sources})
target_compile_options(headers_alone PRIVATE -O0 -g0)
target_link_libraries(headers_alone PRIVATE gradwire_experiments gradwire_flags)
