"""The exceptions of gradwire."""
import re


class ExperimentError(ValueError):
    """An experiment, an option or a folder that cannot be used. Its line says what to change."""


class DataError(ValueError):
    """Data that cannot be used. Its line says what to change."""


class RunError(RuntimeError):
    """A run that failed."""


def with_arguments(error: ExperimentError) -> ExperimentError:
    """The error with the names of arguments, as x=, in place of the options of the program, as --x."""
    return ExperimentError(re.sub(r"--([a-z-]+) ?", lambda m: m[1].replace("-", "_") + "=", str(error)))
