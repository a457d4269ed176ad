"""Log the finished runs that MLflow does not have yet."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from math import inf
from pathlib import Path

from fairbench.cli.command import RESULTS, command
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError
from fairbench.core.options import option


def _log_runs(
    results: Path = RESULTS, uri: str = option(""), experiment: str = option("fairbench")
) -> int:
    """Log every finished run that is not logged yet, each once.

    Parameters
    ----------
    uri : MLflow's server or database; else MLFLOW_TRACKING_URI, or mlflow.db.
    experiment : The experiment in MLflow.

    Examples
    --------
    fairbench sync
    fairbench sync results=old uri=http://server:5000
    """
    from fairbench.results.catalogue import Catalogue
    from fairbench.results.upkeep import read_sweeps
    from fairbench.tracking.importer import Tracking, TrackingError

    tracking = Tracking(uri or None, experiment or Tracking.experiment, 60, inf)
    try:
        logged = tracking.sync(list(Catalogue(results)), read_sweeps(results))
    except TrackingError as error:
        print_line(f"not synchronised: {error}")
        return 1
    print_line(f"{len(logged)} runs of {results} are in MLflow at {tracking.address}")
    return 0


COMMAND = command(_log_runs)


_HOST = "127.0.0.1"
_END_S = 2.0  # seconds that MLflow's server has to end
_LOOK_S = 0.1  # between looks at whether it has ended, or is to end


def _serve(results: Path = RESULTS, port: int = option(5000)) -> int:
    """Print where the runs are to be seen, and serve them until interrupted.

    There is a link to all runs, and one to the charts of the latest sweep. The server ends with
    this command: on Ctrl-C, when it is terminated, or its terminal is closed. None is started where
    MLflow's address is that of a server.

    Parameters
    ----------
    port : The port on 127.0.0.1.

    Examples
    --------
    fairbench ui
    fairbench ui port=5001
    """
    from fairbench.tracking.importer import Tracking, links

    tracking = Tracking()
    served = tracking.address.startswith("http")
    if not 0 <= port < 2**16:
        raise UserError(f"'{port}' is no port")
    with socket.socket() as probe:
        if not served and probe.connect_ex((_HOST, port)) == 0:
            raise UserError(f"port {port} is in use; another one: fairbench ui port=5001")
    site = tracking.address if served else f"http://{_HOST}:{port}"
    print(*links(tracking, site, results), sep="\n", flush=True)
    if served:
        return 0
    print_line("stop with Ctrl-C")
    command = [sys.executable, "-m", "mlflow", "server", "--host", _HOST, "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", tracking.address]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a package has taken the first
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, _: stopped.append(number))
    # Its processes are a group of their own: MLflow ends without those that it has started.
    server = subprocess.Popen(command, env=environment, start_new_session=True)
    while server.poll() is None and not stopped:
        time.sleep(_LOOK_S)
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(_END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    return 0 if stopped else server.wait()


class ui:
    """Serve MLflow's pages on this machine, with links to the runs."""

    COMMAND = command(_serve, holds=False)
