"""Entry point: `python agent.pyz --server URL --lease ID --token-file F --folder WORK --deadline EPOCH ...`.

With `--enrol URL` it is the loop of a pool's host instead, which starts itself anew for each lease.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

from runners.agent import hosting, options, processes, trees
from runners.agent.commands import TAKEN_AWAY, Stop
from runners.agent.host import Host
from runners.agent.lease import Lease, watch
from runners.agent.link import LeaseOverError, RefusedError, SilentError

EXIT_DONE = 0
EXIT_REFUSED = 3
EXIT_DEADLINE = 4
# processes that a lease's own user may have at once
_MOST_PROCESSES = 8192


def main() -> int:
    """Work one lease. Returns 0 when the bot heard the end, 3 when it did not want or hear us, 4 at the deadline."""
    if hosting.is_meant(sys.argv[1:]):
        return hosting.main(sys.argv[1:])
    chosen = options.parse(sys.argv[1:])
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if chosen.uid is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_PROCESSES, _MOST_PROCESSES))
    processes.become_subreaper()
    host = Host(chosen, Stop())
    signal.signal(signal.SIGTERM, lambda *_: host.stop.set(TAKEN_AWAY))
    lease = Lease(chosen, host)

    def give_up() -> None:
        print("the deadline has passed: everything is ended", flush=True)
        _clear(host)
        os._exit(EXIT_DEADLINE)

    watch(lease, host, give_up)
    try:
        lease.work()
    except (LeaseOverError, RefusedError, SilentError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return EXIT_REFUSED
    finally:
        _clear(host)
    return EXIT_DONE


def _clear(host: Host) -> None:
    """Leave nothing on the machine: no process, no file of the lease."""
    host.sweep()
    trees.remove(host.options.folder)
    if host.uid is not None:
        trees.remove_strays(host.uid)


if __name__ == "__main__":
    sys.exit(main())
