"""Environment and benchbot.toml become settings, or all of their faults."""

from pathlib import Path

import pytest

from bot.core.money import Limits
from bot.settings import KEYS, Settings, load_settings, settings_tables

DOC = Path(__file__).resolve().parents[3] / "docs" / "settings.md"
KEY = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"


def _settings(environment: dict[str, str], toml: str | None = None) -> Settings:
    loaded = load_settings(environment, toml)
    assert isinstance(loaded, Settings), loaded
    return loaded


def test_everything_has_a_default() -> None:
    settings = _settings({})
    assert settings.data_folder == Path.cwd() / ".benchbot"
    assert settings.database_url == f"sqlite+aiosqlite:///{Path.cwd()}/.benchbot/benchbot.db"
    assert settings.base_url == settings.agent_url == "http://127.0.0.1:8080"
    assert (settings.prefix, settings.app_id, settings.deployment) == ("/benchmark", 0, "main")
    assert [(name, entry.backend, entry.most_usd_per_hour) for name, entry in settings.hardware.items()] == [
        ("local", "local", 0.0)
    ]


def test_the_file_and_the_environment_that_wins() -> None:
    toml = """
        base_url = "https://bench.example.org/"
        data_folder = "/srv/bench"
        port = 9000
        [github]
        app_id = 12
        private_key = "from the file: PRIVATE KEY"
        webhook_secret = "s"
        [limits]
        at_once = 3
        budget_usd = 50
        month_usd = 1000
        [local]
        trust_all = true
        base_environment = "/opt/venv"
        env.OMP_NUM_THREADS = 1
        [hardware.a100x1]
        backend = "gce"
        price_usd_per_hour = 3.67
        machine_type = "a2-highgpu-1g"
        spot = true
        [hardware.local]
        at_once = 2
        [backends.gce]
        project = "p"
    """
    settings = _settings({"BENCHBOT_PORT": "9100", "BENCHBOT_GITHUB_PRIVATE_KEY": KEY.replace("\n", "\\n")}, toml)
    assert settings.port == 9100
    assert settings.private_key == KEY
    assert settings.base_url == settings.agent_url == "https://bench.example.org"
    assert settings.machines_folder == Path("/srv/bench/machines")
    assert settings.limits == Limits(budget_usd=50, month_usd=1000)
    a100 = settings.hardware["a100x1"]
    assert (a100.backend, a100.price_usd_per_hour, a100.at_once) == ("gce", 3.67, 3)
    assert a100.options == {"machine_type": "a2-highgpu-1g", "spot": "true"}
    assert settings.hardware["local"].at_once == 2
    # whether that is nothing is for its backend to say
    assert settings.hardware["local"].most_usd_per_hour is None
    assert settings.backend_options("gce") == {"project": "p"}
    assert settings.backend_options("local") == {
        "env.OMP_NUM_THREADS": "1",
        "trust_all": "true",
        "base_environment": "/opt/venv",
    }
    assert settings.backend_options("tpu") == {}


def test_secrets_are_not_in_the_settings_text(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text(KEY)
    about = {"APP_ID": "1", "PRIVATE_KEY_FILE": str(path), "WEBHOOK_SECRET": "hunter2"}
    settings = _settings({f"BENCHBOT_GITHUB_{name}": value for name, value in about.items()})
    assert (settings.private_key, settings.webhook_secret) == (KEY, "hunter2")
    assert "hunter2" not in repr(settings)
    assert "BEGIN" not in repr(settings)


@pytest.mark.parametrize(
    ("environment", "toml", "where", "told"),
    [
        ({}, "port = 'x'", "port", "whole number"),
        ({}, "port = true", "port", "whole number"),
        ({}, "port = 70000", "port", "65535"),
        ({"BENCHBOT_PORT": "-1"}, "", "BENCHBOT_PORT", "whole number"),
        ({}, "portt = 1", "portt", "`port`"),
        ({}, "[githubb]\napp_id = 1", "githubb", "`github.app_id`"),
        ({}, "github = 1", "github", "no such key"),
        ({}, "base_url = 'bench.example.org'", "base_url", "https://"),
        ({}, "data_folder = ''", "data_folder", "not empty"),
        ({}, "deployment = 'My Bot'", "deployment", "a-z"),
        ({}, "prefix = '# x'", "prefix", "begins with"),
        ({}, "database_url = 'mysql://x'", "database_url", "sqlite+aiosqlite"),
        ({}, "local.trust_all = 'yes'", "local.trust_all", "true or false"),
        ({}, "local.env = 1", "local.env", "table"),
        ({}, "[hardware.a100]\nprice_usd_per_hour = 1", "hardware.a100", "backend"),
        ({}, "[hardware.a100]\nbackend = 'gce'\nat_once = 0", "hardware.a100.at_once", "at least 1"),
        (
            {},
            "[hardware.a100]\nbackend = 'gce'\nprice_usd_per_hour = -1",
            "hardware.a100.price_usd_per_hour",
            "at least 0",
        ),
        ({}, "[hardware.all]\nbackend = 'gce'", "hardware.all", "not `all`"),
        ({}, "[hardware]\na100 = 'gce'", "hardware.a100", "table"),
        ({}, "[hardware.v5e-8]\nbackend = 'local'\nsimulate = 'tpu'", "hardware.v5e-8.simulate", "ends in `-sim`"),
        ({}, "[hardware.tpu-sim]\nbackend = 'tpu'\nsimulate = 'tpu'", "hardware.tpu-sim.simulate", "local"),
        ({}, "[hardware.a100]\nbackend = 'gce'\nzones = [1]", "hardware.a100.zones", "text"),
        ({}, "[github]\napp_id = 1\nwebhook_secret = 's'", "github.private_key", "missing"),
        ({}, "[github]\napp_id = 1\nprivate_key = 'PRIVATE KEY'", "github.webhook_secret", "missing"),
        ({}, "[github]\nprivate_key = 'x'", "github.private_key", "PEM"),
        ({}, "[github]\nprivate_key_file = '/nowhere/key.pem'", "github.private_key_file", "cannot be read"),
        ({}, "[artifacts]\nbucket = 's3://runs'", "artifacts.bucket", "gs://NAME"),
        ({}, "[artifacts]\nbucket = 'gs://My Runs'", "artifacts.bucket", "gs://NAME"),
        ({}, "[artifacts]\ncredentials_file = '/nowhere/key.json'", "artifacts.credentials_file", "no file"),
        ({}, "[artifacts]\ncache_gb = 'much'", "artifacts.cache_gb", "number"),
        ({}, "port = ", "benchbot.toml", "not TOML"),
    ],
)
def test_a_fault_is_told_with_its_key(environment: dict[str, str], toml: str, where: str, told: str) -> None:
    loaded = load_settings(environment, toml)
    assert isinstance(loaded, tuple)
    assert [fault.where for fault in loaded] == [where]
    assert told in loaded[0].sentence


def test_all_faults_come_at_once() -> None:
    loaded = load_settings({"BENCHBOT_PORT": "x"}, "colour = 1\nbase_url = 'x'\n[local]\ntrust_all = 3")
    assert isinstance(loaded, tuple)
    assert [fault.where for fault in loaded] == ["BENCHBOT_PORT", "base_url", "colour", "local.trust_all"]


def test_the_documentation_lists_every_key_as_the_code_has_it() -> None:
    text = DOC.read_text()
    assert settings_tables() in text
    assert len(KEYS) == settings_tables().count("BENCHBOT_")


def test_a_bucket(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text("{}")
    settings = _settings(
        {"BENCHBOT_ARTIFACTS_BUCKET": "gs://runs/bench/", "BENCHBOT_ARTIFACTS_CREDENTIALS_FILE": str(key)}
    )
    assert (settings.bucket, settings.bucket_credentials_file) == ("gs://runs/bench", str(key))
    assert (settings.bucket_endpoint, settings.cache_bytes) == ("", 20 * 1024**3)
    loaded = load_settings({}, "[artifacts]\nbucket = 'gs://runs'\ncache_gb = 0.5\nendpoint = 'http://127.0.0.1:1'")
    assert isinstance(loaded, Settings)
    assert (loaded.cache_bytes, loaded.bucket_endpoint) == (1024**3 // 2, "http://127.0.0.1:1")


def test_a_list_of_texts_reaches_the_backend_with_commas() -> None:
    """Zones read better as a list."""
    loaded = load_settings({}, "[hardware.a100]\nbackend = 'gce'\nzones = ['us-east1-b', 'us-west1-a']")
    assert isinstance(loaded, Settings)
    assert loaded.hardware["a100"].options["zones"] == "us-east1-b, us-west1-a"
