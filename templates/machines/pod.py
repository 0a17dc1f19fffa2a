"""Brings the benchbot agent into a pod and becomes it. Python 3.9 and newer, standard library only.

Words: the address of agent.pyz, then the agent's own. What is wrong before the agent has begun stands in the pod's
termination message, with an exit status that says so.
"""

import json
import os
import socket
import sys
import time
import urllib.request

METADATA = ("169.254.169.254", 80)
TERMINATION_LOG = "/dev/termination-log"
EXIT_CONFIG = 78
TRIES = 12
# what image and device plugin say of the devices; the agent gives the code nothing else of this environment
DEVICES = ("LD_LIBRARY_PATH", "CUDA_", "NVIDIA_", "TPU_")


def main() -> None:
    """Prepare the folder, and go on as the agent."""
    address, words = sys.argv[1], sys.argv[2:]
    os.umask(0o022)
    if os.getuid() == 0:
        # the folder comes open to everybody; the code's user must not swap what lies in it
        os.chmod(".", 0o711)
    os.environ.setdefault("HOME", os.getcwd())
    if not closed():
        fail(
            "The repository's code could reach the metadata server of the node, so it is not run. The network policies "
            "of this cluster have no effect: turn on a network plugin that keeps them."
        )
    fetch(address)
    found = {name: value for name, value in os.environ.items() if name.startswith(DEVICES)}
    with open("environment.json", "w") as file:
        json.dump(found, file)
    print("benchbot: agent started", flush=True)
    words += ["--environment-file", "environment.json"]
    os.execv(sys.executable, [sys.executable, "agent.pyz", *words])


def closed() -> bool:
    """Whether the metadata server is out of reach; a policy may take effect some seconds after the pod has begun."""
    for _ in range(TRIES):
        try:
            socket.create_connection(METADATA, timeout=2.0).close()
        except OSError:
            return True
        time.sleep(5.0)
    return False


def fetch(address: str) -> None:
    """Download the agent; the network of a pod may come up late."""
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(address, timeout=30.0) as answer:
                body = answer.read()
        except OSError as error:
            if not left:
                fail(f"The agent cannot be fetched from {address}: {error}. Can this cluster reach the bot there?")
            time.sleep(5.0)
            continue
        with open("agent.pyz", "wb") as file:
            file.write(body)
        return


def fail(sentence: str) -> None:
    """Say what is wrong, where the bot reads it, and end."""
    print(f"benchbot: failed: {sentence}", flush=True)
    with open(TERMINATION_LOG, "w") as file:
        file.write(sentence)
    sys.exit(EXIT_CONFIG)


if __name__ == "__main__":
    main()
