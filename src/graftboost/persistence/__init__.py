"""Files: the format, models in files, and writes that are atomic and durable.

The exceptions that users may want to catch are exported here.
"""

from graftboost.persistence.atomic_file import UncertainError
from graftboost.persistence.file_format import InvalidFileError, NewerFileError

__all__ = ["InvalidFileError", "NewerFileError", "UncertainError"]
