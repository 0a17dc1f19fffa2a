"""The words that the bot and its agent exchange. Standard library only, Python 3.9 and newer.

All messages are JSON objects over HTTP under `PREFIX`; files travel as raw bytes. Version 1:

    POST claim                       {lease, token | identity, nonce, agent}
                                                                       -> {credential, heartbeat_s, deadline_at, work}
    POST heartbeat                   {phase, run, at}                  -> {stop: "" | reason, deadline_at}
    POST ready                       {run, port}                       -> {go, leader}; leases of several hosts only
    POST runs/RUN/wanted             {}                                -> {wanted: true | false} or {later: true}
    POST event                       {kind, run, ...}                  -> {}
    PUT  runs/RUN/files/PATH?offset= raw bytes appended at that offset -> {offset}; 409 {offset} when it is another
    GET  runs/RUN/files/PATH         a file that an earlier machine of the lease has shipped (`kept` in the work), or
                                     307 to where it is
    POST runs/RUN/manifest           {files: [{path, size, sha256, md5, sent_as?}], complete}
                                     -> {wanted: [{path, offset} or {path, url}], refused: [{path, sentence}], later}
    POST finish                      {outcome, sentence}               -> {}; outcome is one of OUTCOMES
    GET  source/REPOSITORY_ID.git/…  git's smart HTTP, read only; the bot adds its own credentials

Hosts of an operator's pool ask what they are to do, with a credential that they have made themselves:

    POST hosts/enrol  {code}                             -> {name}; 403 for a code that is unknown, used or too old
    POST hosts/poll   {labels, devices, isolates, holds} -> {order, start, poll_s}

`devices` are {vendor, name, memory_mb, driver, trouble}; `isolates` says whether code can run as another user than the
loop; `holds` are {order, state: "running" | "stopped", code, said}. `order` is the name of the one order that the host
shall hold, empty for none; what else it holds it ends and removes. `start` is null, or what to begin that order with if
it is not there: {server, lease, token, deadline_at, trusted, member, environment, base_environment, devices}, the last
being how many devices there must be.

Every call but claim carries `Authorization: Bearer <credential>`. A claim pins the nonce: the same nonce may claim
again (its answer was lost), another one is refused and ends the lease. `identity` is what some clouds give a machine
to prove itself with, in place of the token of its order.

A lease of several hosts has one agent on each: they claim with `member` 0, 1, ... and `address`, and begin each run
together, when `ready` says go; `leader` is where the first one is reached. A heartbeat's answer may say `abort`, the
id of a run that has failed on another host, and `why`. What the first host tells counts, a failure from anywhere.

Before a run that `asks` in the work, the agent asks whether it is `wanted`; when it is not, none after it is. `later`
means that what has been measured is still being looked at.

A PUT at offset 0 begins the file anew (it was rewritten on the machine, or a manifest found it different). While a run
goes on, logs are sent as they grow; one that is refused waits for the manifest, which asks for whatever is missing, at
most MOST_WANTED files at once. A `url` takes the bytes of exactly that file, without our credential, as a resumable
upload of Google Cloud Storage: PUT with Content-Range, 308 with Range. `later` is true when not all could be looked at,
since the bucket cannot be reached.

The agent takes 401, 403 and 410 as "this lease is over"; 408, 425, 429 and 5xx (other than 501) are tried again.
"""

import shlex

VERSION = 1
PREFIX = "/agent/v1"
LOG_FILE = "log.txt"
LOG_FOLDER = "logs"
CHECKPOINT_FOLDER = "checkpoints"
# what one PUT may carry, in bytes; larger files are sent in several
CHUNK_BYTES = 8 * 1024 * 1024
# files that one answer to a manifest asks for
MOST_WANTED = 100

# kinds of `event` messages, in the order of a lease's life
EVENT_PHASE = "phase"  # {phase: "checkout" | "setup" | "inputs" | "run" | "collect", side, run}
EVENT_RUN_STARTED = "run_started"  # {run}
# {run, exit, seconds, reason, sentence, imported, peak_rss_bytes, log_tail, peak_device_bytes, device_trouble, phases,
# environment}; an older agent leaves the last four out. `phases` are seconds by name of a phase; `peak_device_bytes` is
# null where it could not be measured, and `device_trouble` says why; `environment` is {python, platform, driver,
# devices: [name], frameworks: {module: version}, cuda: {framework: version}, packages: ["name==version"]}
EVENT_RUN_ENDED = "run_ended"

# a framework, or the vendor's tool, does not see the devices that were ordered: as a reason and as an outcome
DEVICE_UNHEALTHY = "device_unhealthy"

# why a run ended, as the agent can tell; "" means exit status 0
REASONS = (
    "",
    "user_error",  # the command ended with a status other than 0
    "oom",  # killed for memory, or the framework said so
    "timeout",  # longer than the benchmark's timeout
    "setup_failed",
    "checkout_failed",  # commit not available
    "input_failed",  # download or hash
    "cancelled",
    DEVICE_UNHEALTHY,
    "agent_error",  # our own fault
)

# how a lease ended: every run has had its EVENT_RUN_ENDED; it was told to stop; the agent itself failed
INTERRUPTED = "interrupted"  # the machine is being taken away: what has been shipped is gone on from elsewhere
OUTCOMES = ("done", "cancelled", "failed", INTERRUPTED, DEVICE_UNHEALTHY)


def is_log(path: str) -> bool:
    """Whether a file of a run is its log or one of its event files, on any host; they are read while it runs."""
    first, _, rest = path.partition("/")
    own = rest if first.startswith("host-") else path
    return own == LOG_FILE or own.startswith(f"{LOG_FOLDER}/")


class PlaceholderError(ValueError):
    """A command holds a placeholder that nobody fills in; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown placeholder {{{name}}}")
        self.name = name


def fill(template: str, words: "dict[str, str]", raw: "dict[str, str] | None" = None) -> str:
    """A shell line with its placeholders filled in.

    `{name}` of `words` becomes one quoted word; `{name}` of `raw` (the `args` that the repository itself wrote) goes
    in as it stands. `{{` and `}}` are literal braces. Raises PlaceholderError for any other name.
    """
    raw = raw or {}
    out = []
    i = 0
    while i < len(template):
        two = template[i : i + 2]
        if two in ("{{", "}}"):
            out.append(two[0])
            i += 2
        elif template[i] == "{":
            end = template.find("}", i)
            name = template[i + 1 : end] if end > 0 else template[i + 1 :]
            if end < 0 or (name not in words and name not in raw):
                raise PlaceholderError(name)
            out.append(raw[name] if name in raw else shlex.quote(words[name]))
            i = end + 1
        else:
            out.append(template[i])
            i += 1
    return "".join(out)
