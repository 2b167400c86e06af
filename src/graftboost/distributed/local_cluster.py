"""A Ray cluster of this machine alone, for as long as it is used.

Import this module before Ray, and only in processes that use no other cluster. Ray decides when it
is imported whether its processes listen on all network interfaces or on loopback only, and the
address that is passed to `ray.init` does not change that.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on all platforms

import ray


@contextlib.contextmanager
def local_cluster(n_cpus: int | None = None, **options: Any) -> Iterator[str]:
    """Start Ray on the loopback interface without a dashboard, and end it.

    Parameters
    ----------
    n_cpus : int or None, default=None
        The number of CPUs that Ray divides among processes; None for all of this machine.
    **options
        Other arguments of `ray.init`.

    Yields
    ------
    str
        The address, for other processes of this machine.
    """
    context = ray.init(
        address="local",
        num_cpus=n_cpus,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        # Ray lowers the priority of its processes. Beside busy ones of normal priority, such a
        # process takes a minute instead of two seconds to start.
        _system_config={"worker_niceness": 0},
        **options,
    )
    try:
        yield context.address_info["address"]
    finally:
        ray.shutdown()
