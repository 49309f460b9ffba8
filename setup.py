"""Makes the wheel of the Python package, with the three programs: pip install --no-build-isolation ."""
import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

BUILD = pathlib.Path("build/wheel")
PROGRAMS = [BUILD / "stripped" / name for name in ("gradwire", "gradwire-server", "gradwire-client")]
(BUILD / "stripped").mkdir(parents=True, exist_ok=True)


class BuildWithCMake(build_ext):
    """Builds the module and the programs for any processor of this architecture."""

    def build_extension(self, extension):
        # A folder of its own: one for tools/packages is built for the system's interpreter.
        subprocess.check_call(["cmake", "--preset", "package", "-B", BUILD, f"-DGRADWIRE_PYTHON={sys.executable}"])
        subprocess.check_call(["cmake", "--build", BUILD, "--parallel", str(os.cpu_count() or 1), "--target", "python",
                               *(program.name for program in PROGRAMS)])
        module = pathlib.Path(self.get_ext_fullpath(extension.name))
        module.parent.mkdir(parents=True, exist_ok=True)
        copies = {module: BUILD / "python/gradwire" / module.name} | {to: BUILD / "bin" / to.name for to in PROGRAMS}
        for to, built in copies.items():
            subprocess.check_call(["strip", "-o", to, built])


setup(
    name="gradwire",
    version=re.search(r'define GRADWIRE_VERSION "(.*)"', pathlib.Path("include/gradwire/version.h").read_text())[1],
    description="Federated learning: one algorithm code, simulated or over TCP, same bits",
    long_description=pathlib.Path("docs/python.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.9",
    install_requires=["numpy"],
    packages=["gradwire"],
    package_dir={"gradwire": "python/gradwire"},
    package_data={"gradwire": ["*.pyi", "py.typed"]},
    ext_modules=[Extension("gradwire._core", [])],
    cmdclass={"build_ext": BuildWithCMake},
    data_files=[("bin", [str(program) for program in PROGRAMS])],
    options={"build": {"build_base": str(BUILD / "setuptools")}, "egg_info": {"egg_base": str(BUILD)}},
)
