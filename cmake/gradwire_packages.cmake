# Rules of cpack: gradwire-server, gradwire-client and python3-gradwire as packages of Debian and Ubuntu (tools/packages).
# EXCLUDE_FROM_ALL keeps their files out of cmake --install.
include(GNUInstallDirs)

foreach(part server client)
  set(from "${PROJECT_SOURCE_DIR}/packaging/${part}")
  set(package gradwire-${part})
  install(TARGETS ${package} RUNTIME DESTINATION bin COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(FILES "${from}/${package}.service" DESTINATION lib/systemd/system COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(DIRECTORY docs/ DESTINATION share/doc/${package} COMPONENT ${part} EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.md"
          PATTERN "images" EXCLUDE PATTERN "site" EXCLUDE)
  install(FILES packaging/copyright CHANGELOG.md DESTINATION share/doc/${package} COMPONENT ${part} EXCLUDE_FROM_ALL)
  string(TOUPPER ${part} PART)
  file(READ "${from}/description" CPACK_DEBIAN_${PART}_DESCRIPTION)
  set(CPACK_DEBIAN_${PART}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${PART}_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_${PART}_PACKAGE_CONTROL_EXTRA "${from}/postinst;${from}/prerm;${from}/postrm;${from}/conffiles")
endforeach()
install(FILES "packaging/server/gradwire-server@.service" DESTINATION lib/systemd/system COMPONENT server EXCLUDE_FROM_ALL)
install(FILES packaging/monitoring/gradwire-alerts.yml packaging/monitoring/gradwire-dashboard.json
        DESTINATION share/gradwire/monitoring COMPONENT server EXCLUDE_FROM_ALL)
install(FILES packaging/server/gradwire-server.sysusers RENAME gradwire-server.conf DESTINATION lib/sysusers.d COMPONENT server
        EXCLUDE_FROM_ALL)
file(GLOB configs CONFIGURE_DEPENDS experiments/configs/deploy_*.toml)
install(FILES ${configs} DESTINATION share/gradwire/configs COMPONENT server EXCLUDE_FROM_ALL)
install(FILES experiments/configs/deploy_silos.toml RENAME experiment.toml DESTINATION /etc/gradwire COMPONENT server
        EXCLUDE_FROM_ALL)
install(FILES packaging/client/client.env DESTINATION /etc/gradwire COMPONENT client EXCLUDE_FROM_ALL)

# The Python package, if it is built for the system's interpreter.
set(CPACK_COMPONENTS_ALL server client)
if(GRADWIRE_PYTHON_INTERPRETER MATCHES "^/usr/bin/")
  list(APPEND CPACK_COMPONENTS_ALL python3)
  gradwire_install_python(lib/python3/dist-packages python3)
  install(FILES packaging/copyright CHANGELOG.md docs/python.md DESTINATION share/doc/python3-gradwire COMPONENT python3 EXCLUDE_FROM_ALL)
  file(READ packaging/python3/description CPACK_DEBIAN_PYTHON3_DESCRIPTION)
  string(REGEX MATCH "[0-9]+$" minor "${GRADWIRE_PYTHON_VERSION}")
  math(EXPR next "${minor} + 1")
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_NAME python3-gradwire)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS "python3 (>= 3.${minor}~), python3 (<< 3.${next}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_SUGGESTS "python3-pandas, python3-scipy, python3-torch")
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/python3/postinst;${PROJECT_SOURCE_DIR}/packaging/python3/prerm")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gradwire)
set(CPACK_PACKAGE_CONTACT "The gradwire authors <gradwire@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "systemd | systemd-standalone-sysusers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # the first line of packaging/*/description
# A package must run on any processor; GRADWIRE_MARCH=native builds only for the processor of this machine.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/gradwire_package_is_portable.cmake")
set(CPACK_GRADWIRE_MARCH "${GRADWIRE_MARCH}")
set(CPACK_GRADWIRE_PAGES "${MICROHTTPD_FOUND}")
include(CPack)
