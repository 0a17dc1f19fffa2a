"""The operator's settings: environment and benchbot.toml to one frozen `Settings`, or every fault at once.

A variable of the environment wins over the file. docs/settings.md lists every key; a test keeps it equal to `KEYS`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from bot.core.money import Limits
from bot.core.nouns import Hardware
from bot.core.options import NAME
from bot.core.wording import code, did_you_mean

LOCAL = Hardware(name="local")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFault:
    """One thing wrong: `where` is the key as in benchbot.toml, or the variable."""

    where: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one deployment runs with. Paths are absolute, addresses end without a slash; `app_id` 0: no GitHub App."""

    data_folder: Path
    database_url: str
    base_url: str
    agent_url: str
    deployment: str = "main"
    host: str = "127.0.0.1"
    port: int = 8080
    prefix: str = "/benchmark"
    app_id: int = 0
    private_key: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    github_api_url: str = "https://api.github.com"
    github_web_url: str = "https://github.com"
    limits: Limits = field(default_factory=Limits)
    bucket: str = ""
    bucket_credentials_file: str = ""
    bucket_endpoint: str = ""
    cache_bytes: int = 20 * 1024**3
    hardware: Mapping[str, Hardware] = field(default_factory=lambda: {LOCAL.name: LOCAL})
    backends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def machines_folder(self) -> Path:
        """Where the backends keep what they need on this host."""
        return self.data_folder / "machines"

    def backend_options(self, name: str) -> Mapping[str, str]:
        """The operator's table of one backend."""
        return self.backends.get(name, {})


N = TypeVar("N", float, None)
Kind = Literal["text", "folder", "file", "address", "number", "whole", "truth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of benchbot.toml. `default` and `meaning` are for people, in Markdown."""

    name: str
    kind: Kind
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        """The variable of the environment that wins over the file."""
        return f"BENCHBOT_{self.name.upper().replace('.', '_')}"


def _key(name: str, kind: Kind, default: str, meaning: str) -> Key:
    return Key(name=name, kind=kind, default=default, meaning=meaning)


KEYS = {
    key.name: key
    for key in (
        _key("deployment", "text", "`main`", "a name for this bot, part of its machines' names: 1 to 20 of a-z, 0-9"),
        _key("data_folder", "folder", "`.benchbot`", "where database, artifacts and local machines live"),
        _key(
            "database_url", "text", "SQLite in the data folder", "`sqlite+aiosqlite:///…` or `postgresql+asyncpg://…`"
        ),
        _key("base_url", "address", "`http://HOST:PORT`", "the address that links in comments use"),
        _key(
            "agent_url",
            "address",
            "`http://127.0.0.1:PORT`, or `base_url` where that is set",
            "the address that machines use",
        ),
        _key("host", "text", "`127.0.0.1`", "the address to listen on"),
        _key("port", "whole", "`8080`", "the port to listen on"),
        _key("prefix", "text", "`/benchmark`", "the word that commands begin with"),
        _key("github.app_id", "whole", "none", "the App's id; `benchbot setup` registers an App and stores all three"),
        _key("github.private_key", "text", "none", "the App's private key (PEM)"),
        _key("github.private_key_file", "file", "none", "a file with the private key, instead of the key"),
        _key("github.webhook_secret", "text", "none", "the secret that GitHub signs webhooks with"),
        _key("github.api_url", "address", "`https://api.github.com`", "GitHub's API"),
        _key("github.web_url", "address", "`https://github.com`", "GitHub's pages and git"),
        _key("limits.at_once", "whole", "`1`", "leases at once per hardware that does not say it itself"),
        _key("limits.budget_usd", "number", "none", "what one request may cost at most, by its estimate"),
        _key("limits.pull_usd", "number", "none", "what all requests of one pull request may cost"),
        _key("limits.person_usd_per_day", "number", "none", "what one person may ask for on one day (UTC)"),
        _key("limits.repository_usd_per_month", "number", "none", "what one repository may cost in one month (UTC)"),
        _key("limits.month_usd", "number", "none", "what everything may cost in one month (UTC)"),
        _key("limits.confirm_usd", "number", "none", "an estimate above it waits for `confirm` before anything starts"),
        _key("artifacts.bucket", "text", "none", "`gs://NAME/PREFIX`: files of runs are kept there, see artifacts.md"),
        _key("artifacts.credentials_file", "file", "the host's own account", "a key of the bucket's service account"),
        _key("artifacts.endpoint", "address", "`https://storage.googleapis.com`", "where Cloud Storage is, for tests"),
        _key("artifacts.cache_gb", "number", "`20`", "with a bucket: what logs on the server's disk may take"),
        _key("local.trust_all", "truth", "`false`", "run strangers' code on this host even without a user of its own"),
        _key("local.base_environment", "folder", "none", "a virtual environment that local runs are layered on"),
    )
}
HARDWARE_KEYS = {
    "backend": "where its machines come from: `local`, ...",
    "price_usd_per_hour": "what one machine costs; 0: not billed; where it is not set, the backend's list price",
    "at_once": "leases at once",
    "hosts": "machines of one lease, which train together; 1 where it is not set",
    "wait_s": "seconds that a request waits for a machine which the cloud does not have; 1800 where it is not set",
}


def load_settings(environment: Mapping[str, str], toml_text: str | None) -> Settings | tuple[SettingFault, ...]:
    """Settings from variables `BENCHBOT_...` and the text of benchbot.toml (None: no file); all faults, sorted."""
    reader = _Reader(environment)
    try:
        tables = tomllib.loads(toml_text or "")
    except tomllib.TOMLDecodeError as error:
        return (SettingFault(where="benchbot.toml", sentence=f"This is not TOML: {error}."),)
    reader.flatten(tables)
    settings = reader.settings()
    return tuple(sorted(reader.faults, key=lambda fault: fault.where)) if settings is None else settings


def settings_tables() -> str:
    """The Markdown tables of docs/settings.md."""
    rows = ["| key | variable | default | meaning |", "|---|---|---|---|"]
    rows += [f"| `{key.name}` | `{key.variable}` | {key.default} | {key.meaning} |" for key in KEYS.values()]
    rows += ["", "| key of `[hardware.NAME]` | meaning |", "|---|---|"]
    rows += [f"| `{name}` | {meaning} |" for name, meaning in HARDWARE_KEYS.items()]
    return "\n".join(rows)


class _KindError(ValueError):
    """A value of another kind than its key's; the text is a sentence for people."""


def _typed(key: Key, value: object, *, from_text: bool) -> Any:
    """The value as its key's kind; variables of the environment come as texts. Raises _KindError."""
    text = str(value).strip()
    if key.kind == "truth":
        if isinstance(value, bool) or (from_text and text.lower() in ("true", "false")):
            return text.lower() == "true"
        raise _KindError("It is true or false.")
    if key.kind in ("whole", "number"):
        is_number = isinstance(value, int if key.kind == "whole" else int | float) and not isinstance(value, bool)
        pattern = r"[0-9]{1,15}" if key.kind == "whole" else r"[0-9]{1,9}(\.[0-9]+)?"
        if (is_number or from_text) and re.fullmatch(pattern, text):
            return int(text) if key.kind == "whole" else float(text)
        raise _KindError(f"It is a {'whole ' if key.kind == 'whole' else ''}number of at least 0.")
    if not isinstance(value, str) or not text:
        raise _KindError("It is a text that is not empty.")
    if key.kind in ("folder", "file"):
        return Path(text).expanduser().absolute()
    if key.kind == "address":
        if not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", text):
            raise _KindError("It is an address such as `https://bench.example.org`.")
        return text.rstrip("/")
    return text


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class _Reader:
    """Collects values and faults; `settings()` is None when there are faults."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.faults: list[SettingFault] = []
        self.values: dict[str, Any] = {}
        self.hardware: dict[str, Any] = {}
        self.backends: dict[str, dict[str, str]] = {}
        self.environment = environment
        for key in KEYS.values():
            if environment.get(key.variable, "") != "":
                self._keep(key, environment[key.variable], key.variable, from_text=True)

    def flatten(self, tables: Mapping[str, Any]) -> None:
        """Take the file's tables; what the environment has set already stays."""
        for name, value in tables.items():
            if name == "hardware" and isinstance(value, dict):
                self.hardware = value
            elif name == "backends" and isinstance(value, dict):
                self.backends |= {
                    backend: self._texts(f"backends.{backend}", table) for backend, table in value.items()
                }
            elif isinstance(value, dict) and any(key.startswith(f"{name}.") for key in KEYS):
                for inner, item in value.items():
                    if name == "local" and inner == "env":
                        table = self._texts("local.env", item)
                        self.backends.setdefault("local", {}).update({f"env.{k}": v for k, v in table.items()})
                    else:
                        self._take(f"{name}.{inner}", item)
            else:
                self._take(name, value)

    def settings(self) -> Settings | None:
        """All settings with their defaults filled in."""
        get = self.values.get
        folder: Path = get("data_folder") or Path(".benchbot").absolute()
        host, port = get("host") or "127.0.0.1", get("port", 8080)
        base_url = get("base_url") or f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}"
        agent_url = get("agent_url") or get("base_url") or f"http://127.0.0.1:{port}"
        self._check("deployment", r"[a-z0-9]{1,20}", "It is 1 to 20 of a-z and 0-9.")
        self._check(
            "prefix", r"[/@!.][A-Za-z][A-Za-z0-9_-]{0,50}", "It is a word that begins with `/`, `@`, `!` or `.`."
        )
        self._check(
            "database_url", r"(sqlite\+aiosqlite|postgresql\+asyncpg)://.+", f"It is {KEYS['database_url'].meaning}."
        )
        self._check(
            "artifacts.bucket",
            r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[A-Za-z0-9._-]+)*/?",
            "It is `gs://NAME` or `gs://NAME/PREFIX`.",
        )
        credentials = get("artifacts.credentials_file")
        if credentials and not credentials.is_file():
            self._fault("artifacts.credentials_file", f"There is no file {code(str(credentials))}.")
        if not 0 <= port <= 65_535:
            self._fault("port", "It is a number up to 65535.")
        local = {"trust_all": "true"} if get("local.trust_all") else {}
        if get("local.base_environment"):
            local["base_environment"] = str(get("local.base_environment"))
        key, hardware = self._private_key(), self._hardware()
        if self.faults:
            return None
        return Settings(
            data_folder=folder,
            database_url=get("database_url") or f"sqlite+aiosqlite:///{folder / 'benchbot.db'}",
            base_url=base_url,
            agent_url=agent_url,
            deployment=get("deployment", "main"),
            host=host,
            port=port,
            prefix=get("prefix", "/benchmark"),
            app_id=get("github.app_id", 0),
            private_key=key,
            webhook_secret=get("github.webhook_secret", ""),
            github_api_url=get("github.api_url", "https://api.github.com"),
            github_web_url=get("github.web_url", "https://github.com"),
            limits=Limits(**{name: get(f"limits.{name}") for name in Limits.__dataclass_fields__}),
            bucket=get("artifacts.bucket", "").rstrip("/"),
            bucket_credentials_file=str(get("artifacts.credentials_file") or ""),
            bucket_endpoint=get("artifacts.endpoint", ""),
            cache_bytes=int(get("artifacts.cache_gb", 20) * 1024**3),
            hardware=hardware,
            backends={**self.backends, "local": {**self.backends.get("local", {}), **local}},
        )

    def _fault(self, where: str, sentence: str) -> None:
        self.faults.append(SettingFault(where=where, sentence=sentence))

    def _check(self, name: str, pattern: str, sentence: str) -> None:
        value = self.values.get(name)
        if value is not None and not re.fullmatch(pattern, value):
            self._fault(name, f"{code(value)} cannot be used. {sentence}" if name != "database_url" else sentence)

    def _take(self, name: str, value: object) -> None:
        key = KEYS.get(name)
        if key is None:
            near = did_you_mean(name, (*KEYS, "hardware", "backends"))
            self._fault(name, f"There is no such key. {near}")
        elif name not in self.values:
            self._keep(key, value, name)

    def _keep(self, key: Key, value: object, where: str, *, from_text: bool = False) -> None:
        try:
            self.values[key.name] = _typed(key, value, from_text=from_text)
        except _KindError as error:
            self._fault(where, str(error))

    def _texts(self, where: str, table: object) -> dict[str, str]:
        """A backend's options: simple values, kept as texts, and lists of texts, kept with commas."""
        if not isinstance(table, dict):
            self._fault(where, "It is a table.")
            return {}
        table = {name: ", ".join(value) if _is_texts(value) else value for name, value in table.items()}
        wrong = [name for name, value in table.items() if not isinstance(value, str | int | float | bool)]
        for name in wrong:
            self._fault(f"{where}.{name}", "It is a text, a number, true, false, or a list of texts.")
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in table.items()
            if name not in wrong
        }

    def _private_key(self) -> str:
        key: str = self.values.get("github.private_key", "")
        path = self.values.get("github.private_key_file")
        if key and path:
            self._fault("github.private_key_file", "Give the key or its file, not both.")
        elif path:
            try:
                key = path.read_text()
            except (OSError, ValueError):
                self._fault("github.private_key_file", f"{code(str(path))} cannot be read as a text file by this user.")
        # a variable of the environment often holds a PEM text on one line
        key = key.replace("\\n", "\n")
        if key and "PRIVATE KEY" not in key:
            self._fault("github.private_key", "It is no PEM text of a private key.")
        if self.values.get("github.app_id"):
            if not key and not path:
                self._fault("github.private_key", "It is missing, but `github.app_id` is set.")
            if not self.values.get("github.webhook_secret"):
                self._fault("github.webhook_secret", "It is missing, but `github.app_id` is set.")
        return key

    def _hardware(self) -> Mapping[str, Hardware]:
        at_once = self.values.get("limits.at_once") or 1
        found = {LOCAL.name: Hardware(name=LOCAL.name, at_once=at_once)}
        for name, table in self.hardware.items():
            where = f"hardware.{name}"
            if not NAME.fullmatch(name) or name == "all":
                self._fault(where, "A name is made of letters, digits, `.`, `_` and `-`, and is not `all`.")
            options = self._texts(where, table)
            if not isinstance(table, dict):
                continue
            price = self._number(options, where, _key("price_usd_per_hour", "number", "", ""), None)
            most = int(self._number(options, where, _key("at_once", "whole", "", ""), at_once))
            if most < 1:
                self._fault(f"{where}.at_once", "It is at least 1.")
            wait_s = self._number(options, where, _key("wait_s", "number", "", ""), LOCAL.wait_s)
            hosts = int(self._number(options, where, _key("hosts", "whole", "", ""), 1))
            if not 1 <= hosts <= 64:
                self._fault(f"{where}.hosts", "It is 1 to 64.")
            if hosts > 1:
                # backends where one order brings them all have to know
                options["hosts"] = str(hosts)
            backend = options.pop("backend", "local" if name == LOCAL.name else "")
            if not backend:
                self._fault(where, "It does not say its `backend`.")
            if options.get("simulate") and (backend != "local" or not name.endswith("-sim")):
                self._fault(
                    f"{where}.simulate",
                    'It goes with `backend = "local"` and a name that ends in `-sim`, so that nobody takes its numbers '
                    "for those of real hardware.",
                )
            found[name] = Hardware(
                name=name,
                backend=backend,
                price_usd_per_hour=price,
                listed_usd_per_hour=None,
                at_once=most,
                wait_s=wait_s,
                hosts=hosts,
                options=options,
            )
        return found

    def _number(self, options: dict[str, str], where: str, key: Key, default: N) -> float | N:
        """Takes a number out of the options of one hardware."""
        text = options.pop(key.name, None)
        try:
            return default if text is None else float(_typed(key, text, from_text=True))
        except _KindError as error:
            self._fault(f"{where}.{key.name}", str(error))
            return default
