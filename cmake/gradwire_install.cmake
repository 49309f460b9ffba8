# Rules of cmake --install: the programs that are built, and the component `development` if all libraries are built: static
# libraries, headers, and a package file for find_package(gradwire).
include(CMakePackageConfigHelpers)
set(gradwire_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gradwire")
set(development COMPONENT development EXCLUDE_FROM_ALL)

install(EXPORT gradwire NAMESPACE gradwire:: DESTINATION ${gradwire_cmake_dir} FILE gradwire-targets.cmake ${development})
foreach(room base engine ${rooms})
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradwire ${development} FILES_MATCHING PATTERN "*.h")
endforeach()

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/gradwire-config.cmake.in gradwire-config.cmake INSTALL_DESTINATION ${gradwire_cmake_dir})
# In versions 0.x a new minor version may change anything.
write_basic_package_version_file(gradwire-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config-version.cmake" DESTINATION ${gradwire_cmake_dir} ${development})

get_property(libraries GLOBAL PROPERTY GRADWIRE_LIBRARIES)
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
