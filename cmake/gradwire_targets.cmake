# The functions gradwire_library(), gradwire_program() and gradwire_test(): one call for each library, program and test program.
include(GNUInstallDirs)
find_package(Threads REQUIRED)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# A shared library, or a module that contains gradwire, shows only what is marked GRADWIRE_API.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Flags of every target of this tree. They are not exported to users of the package.
add_library(gradwire_flags INTERFACE)
target_compile_options(gradwire_flags INTERFACE -Wall -Wextra $<$<BOOL:${GRADWIRE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 raise false alarms about "text" + std::string (PR 105651, 105329), about arrays shorter than a vector of
  # AVX-512 in loops of any length, about fences that the thread sanitizer does not model, and about types in anonymous
  # namespaces when CMAKE_UNITY_BUILD includes their files. Clang and the asan preset find the real faults.
  target_compile_options(gradwire_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
                                                  -Wno-stringop-overread -Wno-array-bounds -Wno-tsan
                                                  -Wno-subobject-linkage)
endif()
if(NOT GRADWIRE_MARCH STREQUAL "baseline")
  target_compile_options(gradwire_flags INTERFACE -march=${GRADWIRE_MARCH})
endif()

# Builds everything that is installed, without the tests.
add_custom_target(programs)

# gradwire_library(NAME SOURCES ... [LINK public libraries] [PRIVATE hidden libraries]): the archive of a room.
function(gradwire_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Users of the package instantiate templates, which must give the same bits as the programs.
  # The linker of the Python module then leaves out the functions that it does not call.
  target_compile_options(${name} PUBLIC -ffp-contract=off PRIVATE -ffunction-sections)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:gradwire_flags> ${ARG_PRIVATE})
  add_dependencies(programs ${name})
  set_property(GLOBAL APPEND PROPERTY GRADWIRE_ROOMS ${name})
endfunction()

# gradwire_lean_messages(FROM.proto TO_STEM NAMESPACE OUT): makes TO_STEM.pb.h on the runtime of proto/lean, for the library
# gradwire_lean. Sets OUT to the list of sources.
function(gradwire_lean_messages from to namespace out)
  find_program(GRADWIRE_SCRIPTS_PYTHON python3 REQUIRED)
  set(script "${PROJECT_SOURCE_DIR}/proto/lean/generate_messages.py")
  add_custom_command(OUTPUT "${to}.pb.cc" "${to}.pb.h" DEPENDS "${from}" "${script}" VERBATIM
                     COMMAND "${GRADWIRE_SCRIPTS_PYTHON}" "${script}" "${from}" "${to}" --namespace "${namespace}")
  set(${out} "${to}.pb.cc" "${to}.pb.h" PARENT_SCOPE)
endfunction()

# gradwire_messages(STEM OUT): makes STEM.pb.h from STEM.proto in the build tree, with the lite runtime, which the client also
# links, or with GRADWIRE_LEAN_MESSAGES on that of proto/lean. Sets OUT to the list of sources.
function(gradwire_messages stem out)
  set(from "${CMAKE_CURRENT_SOURCE_DIR}/${stem}.proto")
  set(to "${CMAKE_CURRENT_BINARY_DIR}/${stem}")
  get_filename_component(from_folder "${from}" DIRECTORY)
  get_filename_component(to_folder "${to}" DIRECTORY)
  file(MAKE_DIRECTORY "${to_folder}")
  if(GRADWIRE_LEAN_MESSAGES)
    gradwire_lean_messages("${from}" "${to}" "" messages)
  else()
    add_custom_command(OUTPUT "${to}.pb.cc" "${to}.pb.h" DEPENDS "${from}" VERBATIM
                       COMMAND protobuf::protoc "--cpp_out=${to_folder}" "-I${from_folder}" "${from}")
  endif()
  set_source_files_properties("${to}.pb.cc" PROPERTIES COMPILE_OPTIONS -w)
  set(${out} "${to}.pb.cc" "${to}.pb.h" PARENT_SCOPE)
endfunction()

# gradwire_program(NAME SOURCES ... LINK libraries)
function(gradwire_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} gradwire_flags Threads::Threads)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs OPTIONAL)
  add_dependencies(programs ${name})
endfunction()

# gradwire_test(NAME SOURCES patterns ... LINK libraries [LABELS labels] [PREFIX of the names of the tests]): one GoogleTest
# program. The thread sanitizer runs tests with the label `threads`; tests with the label `processes` start our programs; tests
# named Slow... also get the label `slow`. The labels of a test are one word, because gtest_discover_tests() does not pass lists
# on; `ctest -L threads` matches a part of the word.
function(gradwire_test name)
  cmake_parse_arguments(ARG "" "PREFIX" "SOURCES;LINK;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} gradwire_flags GTest::gtest_main Threads::Threads)
  target_compile_definitions(${name} PRIVATE GRADWIRE_TEST_DATA="${GRADWIRE_TEST_DATA}" GRADWIRE_BIN_DIR="${CMAKE_BINARY_DIR}/bin"
                             GRADWIRE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threads ${name})
  endif()
  if("processes" IN_LIST ARG_LABELS)
    add_dependencies(${name} programs)
  endif()
  list(JOIN ARG_LABELS "," labels)
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" TEST_FILTER "-*.Slow*" NO_PRETTY_VALUES PROPERTIES TIMEOUT 600 LABELS "${labels}")
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" TEST_FILTER "*.Slow*" TEST_LIST ${name}_slow NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT 3600 LABELS "${labels},slow")
endfunction()
