# One line per library, program and test: gradwire_library(), gradwire_program(), gradwire_test().
include(GNUInstallDirs)
find_package(Threads REQUIRED)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC looks for memory that it can use again from 1 GB on, not from 128 MB: a tenth less time, for 150 MB at most.
  add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
endif()

# Flags of every target of this tree; never exported to users of the package.
add_library(gradwire_flags INTERFACE)
target_compile_options(gradwire_flags INTERFACE -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12 and 13 about "text" + std::string (PR 105651, 105329), more of them where headers are
  # precompiled or instrumented, and about arrays shorter than a vector of AVX-512 that a loop over any length reads
  # (maybe-uninitialized); clang and the asan preset find the real ones.
  target_compile_options(gradwire_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
if(GRADWIRE_WERROR)
  target_compile_options(gradwire_flags INTERFACE -Werror)
endif()
if(GRADWIRE_MARCH STREQUAL "native")
  target_compile_options(gradwire_flags INTERFACE -march=native)
elseif(NOT GRADWIRE_MARCH STREQUAL "baseline")
  target_compile_options(gradwire_flags INTERFACE -march=${GRADWIRE_MARCH})
endif()
if(GRADWIRE_SANITIZE)
  add_compile_options(-fsanitize=${GRADWIRE_SANITIZE} -fno-omit-frame-pointer)
  if(GRADWIRE_SANITIZE MATCHES "undefined")
    # The checks left out take a third of the compile time; the address sanitizer catches these bad pointers, too.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,vptr,object-size,pointer-overflow,return
                        -fno-sanitize=nonnull-attribute,returns-nonnull-attribute)
  endif()
  if(GRADWIRE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns of Asio's fences, which the sanitizer does not model; each io_context here belongs to one thread.
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=${GRADWIRE_SANITIZE})
endif()

# More than a hundred test programs are linked: mold, if installed, takes a tenth of the time. Users' programs are linked
# without mold, with the compiler's link-time optimisation.
if(NOT GRADWIRE_LTO)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold GRADWIRE_HAS_MOLD)
  if(GRADWIRE_HAS_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# What sees the list of the kinds of problems, and what else is compiled with it. It is compiled apart from other files
# (GRADWIRE_UNITY), and once more by tests/CMakeLists.txt, with a kind that somebody else adds.
file(GLOB GRADWIRE_SEES_KINDS CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/proto/config/*.cpp")
list(FILTER GRADWIRE_SEES_KINDS EXCLUDE REGEX "toml_reader")
foreach(source engine/problems/problem experiments/optimum/f_star experiments/simulate/over_ranks experiments/simulate/prepare
        experiments/simulate/simulate experiments/support/results_dir fl_client/local_problem proto/report/columns
        proto/report/json proto/report/log_limit proto/report/metrics_file proto/report/summary)
  list(APPEND GRADWIRE_SEES_KINDS "${PROJECT_SOURCE_DIR}/${source}.cpp")
endforeach()

set(GRADWIRE_LIBRARIES "" CACHE INTERNAL "libraries to install and export")
# All that is installed, without the tests.
add_custom_target(programs)

# gradwire_library(NAME [TEXTS] SOURCES ... [LINK public libraries] [PRIVATE hidden libraries]). TEXTS: it reads, writes and gives
# orders, and the loops that take long are in others; the optimiser would add a third to the time of its compilation.
function(gradwire_library name)
  cmake_parse_arguments(ARG "TEXTS" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/gradwire>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  # Also for users of the package: templates that they instantiate must give the bits that the programs give.
  target_compile_options(${name} PUBLIC -ffp-contract=off)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:gradwire_flags> ${ARG_PRIVATE})
  set(group_size 28)
  if(ARG_TEXTS)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    set(group_size 60)
  endif()
  string(REPLACE "gradwire_" "" short ${name})
  if(short IN_LIST GRADWIRE_UNITY OR GRADWIRE_UNITY MATCHES "^(ON|1|TRUE|YES)$")
    set(count 0)
    foreach(source ${ARG_SOURCES})
      if(NOT source MATCHES "\\.cpp$")
        continue()
      endif()
      get_filename_component(path "${source}" ABSOLUTE)
      get_source_file_property(group "${source}" UNITY_GROUP)
      if(path IN_LIST GRADWIRE_SEES_KINDS)
        set(group kinds)
      elseif(NOT group)
        math(EXPR group "${count} / ${group_size}")
        math(EXPR count "${count} + 1")
      endif()
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
    endforeach()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # A .cpp file's own types are in anonymous namespaces; included by another file they look like a header's.
      target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
  if(GRADWIRE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND
     NOT name MATCHES "base|tape|oracles|data|compressors|algorithms|rounds")
    # A call for each access, not its code in place: compiled in two thirds of the time. What computes would run slowly.
    target_compile_options(${name} PRIVATE "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  if(GRADWIRE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # One precompiled header for all libraries: that of the first. Clang reads the headers themselves as fast.
    if(name STREQUAL "gradwire_base")
      target_precompile_headers(${name} PRIVATE <algorithm> <cmath> <filesystem> <functional> <map> <memory> <optional> <span>
                                <string> <variant> <vector>)
    else()
      target_precompile_headers(${name} REUSE_FROM gradwire_base)
    endif()
  endif()
  if(GRADWIRE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Fat objects: programs link with LTO, the many test programs without.
    target_compile_options(${name} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
  gradwire_export(${name})
endfunction()

# gradwire_libraries(NAME LINK ...): several libraries under one name.
function(gradwire_libraries name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${ARG_LINK})
  gradwire_export(${name})
endfunction()

# Users of the package find it as gradwire::NAME, without "gradwire_".
function(gradwire_export name)
  string(REPLACE "gradwire_" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(gradwire::${short} ALIAS ${name})
  set(GRADWIRE_LIBRARIES ${GRADWIRE_LIBRARIES} ${name} CACHE INTERNAL "")
  add_dependencies(programs ${name})
endfunction()

# gradwire_program(NAME SOURCES ... LINK libraries): its own sources are little but parsers of the command line, over which the
# optimiser would take half a minute. Not -O0: the linker takes their copies of inline functions for the whole program.
function(gradwire_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} gradwire_flags Threads::Threads)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(GRADWIRE_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 28)
  endif()
  if(GRADWIRE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -flto=auto)
    target_link_options(${name} PRIVATE -O3 -flto=auto -fuse-linker-plugin -Wno-stringop-overflow)  # as in gradwire_flags
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  add_dependencies(programs ${name})
endfunction()

# gradwire_test(NAME SOURCES ... LINK libraries): one GoogleTest program, one line.
function(gradwire_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} gradwire_flags GTest::gtest GTest::gtest_main Threads::Threads)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # The libraries under test are built as users get them; the test code itself need not be fast, and compiles in half the
  # time. No LTO: linking forty programs with it would take longer than all the rest.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(GRADWIRE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${name} PRIVATE -fno-lto)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(GRADWIRE_TEST_SHARDS AND NOT name MATCHES "processes|experiments")
    list(LENGTH ARG_SOURCES shards)
    foreach(shard RANGE 1 ${shards})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_${shard} COMMAND ${name})
      set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 600
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  endif()
endfunction()
