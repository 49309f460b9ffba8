# Rules of cmake --install: the programs that are built, and the component `development` if all libraries are built: static
# libraries, headers, and a package file for find_package(gradwire).
include(CMakePackageConfigHelpers)
set(gradwire_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gradwire")
set(development COMPONENT development EXCLUDE_FROM_ALL)

# All rooms as one shared library. It shows only include/gradwire/. With BUILD_SHARED_LIBS it is what is installed.
get_property(rooms GLOBAL PROPERTY GRADWIRE_ROOMS)
file(TOUCH "${PROJECT_BINARY_DIR}/empty.cpp")
add_library(gradwire_shared SHARED "${PROJECT_BINARY_DIR}/empty.cpp")
set_target_properties(gradwire_shared PROPERTIES OUTPUT_NAME gradwire VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(gradwire_shared PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_options(gradwire_shared PUBLIC -ffp-contract=off)
target_compile_features(gradwire_shared PUBLIC cxx_std_20)
target_link_libraries(gradwire_shared PRIVATE -Wl,--whole-archive ${rooms} -Wl,--no-whole-archive)

target_link_options(gradwire_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/gradwire.map)

# The libraries as programs name them, gradwire::NAME, with the rooms that each needs.
function(gradwire_public name)
  add_library(gradwire_public_${name} INTERFACE)
  set_target_properties(gradwire_public_${name} PROPERTIES EXPORT_NAME ${name})
  if(BUILD_SHARED_LIBS)
    set(ARGN gradwire_shared)
  endif()
  target_link_libraries(gradwire_public_${name} INTERFACE ${ARGN})
  install(TARGETS gradwire_public_${name} EXPORT gradwire COMPONENT development EXCLUDE_FROM_ALL)
endfunction()
gradwire_public(engine gradwire_tape gradwire_oracles gradwire_compressors)
gradwire_public(simulation gradwire_api)
gradwire_public(client gradwire_api_client)
gradwire_public(server gradwire_api_server)

if(BUILD_SHARED_LIBS)
  set(installed gradwire_shared)
else()
  set(installed ${rooms})
  set_target_properties(gradwire_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
install(TARGETS ${installed} EXPORT gradwire DESTINATION ${CMAKE_INSTALL_LIBDIR} ${development})
install(EXPORT gradwire NAMESPACE gradwire:: DESTINATION ${gradwire_cmake_dir} FILE gradwire-targets.cmake ${development})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/gradwire-config.cmake.in gradwire-config.cmake INSTALL_DESTINATION ${gradwire_cmake_dir})
# In versions 0.x a new minor version may change anything.
write_basic_package_version_file(gradwire-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config-version.cmake" DESTINATION ${gradwire_cmake_dir} ${development})

list(TRANSFORM installed REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE libraries)
install(CODE "
  set(missing FALSE)
  set(libraries \"${libraries}\")
  foreach(library IN LISTS libraries)
    if(NOT EXISTS \"\${library}\")
      set(missing TRUE)
    endif()
  endforeach()
  if(missing)
    message(STATUS \"Not installed: headers and libraries, because they are not all built. tools/build all builds them\")
  else()
    execute_process(COMMAND \"\${CMAKE_COMMAND}\" --install \"${CMAKE_BINARY_DIR}\" --component development
                            --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)
  endif()" COMPONENT programs)

install(DIRECTORY experiments/configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gradwire/configs COMPONENT programs
        FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gradwire/docs COMPONENT programs
        PATTERN "*.dox" EXCLUDE PATTERN "Doxyfile" EXCLUDE PATTERN "site" EXCLUDE)
install(FILES README.md CONTRIBUTING.md CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gradwire COMPONENT programs)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/gradwire COMPONENT programs)
