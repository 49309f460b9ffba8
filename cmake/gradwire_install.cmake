# Rules of cmake --install: programs, static libraries, headers, configs and a package file for find_package(gradwire).
include(CMakePackageConfigHelpers)
set(gradwire_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gradwire")

install(EXPORT gradwire NAMESPACE gradwire:: DESTINATION ${gradwire_cmake_dir} FILE gradwire-targets.cmake)
foreach(room base engine ${rooms})
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradwire FILES_MATCHING PATTERN "*.h")
endforeach()

configure_package_config_file(cmake/gradwire-config.cmake.in gradwire-config.cmake INSTALL_DESTINATION ${gradwire_cmake_dir})
# In versions 0.x a new minor version may change anything.
write_basic_package_version_file(gradwire-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/gradwire-config-version.cmake" DESTINATION ${gradwire_cmake_dir})

install(DIRECTORY experiments/configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gradwire/configs FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gradwire PATTERN "*.dox" EXCLUDE PATTERN "Doxyfile" EXCLUDE)
install(FILES README.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/gradwire)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/gradwire)
