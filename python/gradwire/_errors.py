"""The exceptions of gradwire."""


class ExperimentError(ValueError):
    """An experiment, an option or a folder that cannot be used. Its line says what to change."""


class DataError(ValueError):
    """Data that cannot be used. Its line says what to change."""


class RunError(RuntimeError):
    """A run that failed."""
