"""Words, flags and settings that are wrong, and the help that says what is right."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from rtopt.cli.commands import COMMANDS
from tests.unit.cli.conftest import CommandLine, ended
from tests.unit.cli.fakes import Overlay, serving

TOKEN = "canary-token-9f2c"
LEVER = ("--lever", "max_num_active_seqs")


def test_without_a_command_the_help_is_shown(rtopt: CommandLine) -> None:
    done = rtopt()
    assert done.code == 2
    for name in COMMANDS:
        assert name in done.out + done.err


def test_help_names_every_command_in_half_a_second_of_work(rtopt: CommandLine) -> None:
    costs_s = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = ended(rtopt.start("--help"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.code == 0
        assert all(name in done.out for name in COMMANDS)
    assert min(costs_s) < 0.5, "processor time: the machine may be busy with something else"


def test_the_version_is_one_line(rtopt: CommandLine) -> None:
    done = ended(rtopt.start("--version"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("rtopt ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(rtopt: CommandLine, name: str) -> None:
    done = rtopt(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"rtopt {name}" in done.out


def test_an_unknown_command_lists_the_known_ones(rtopt: CommandLine) -> None:
    done = rtopt("optimise")
    assert done.code == 2
    assert "optimise: no such command" in done.line()
    assert ", ".join(COMMANDS) in done.line()


@pytest.mark.parametrize(
    "words",
    [
        ("--nope",),
        ("profile",),
        ("profile", "a", "b"),
        ("profile", "a", "--nope"),
        ("profile", "a", "--duration", "long"),
        ("report",),
        ("serve", "--port", "x"),
    ],
    ids=" ".join,
)
def test_wrong_words_are_usage_errors(rtopt: CommandLine, words: tuple[str, ...]) -> None:
    done = rtopt(*words)
    assert done.code == 2
    assert done.err
    assert "Traceback" not in done.err


def test_apply_wants_a_server_and_a_lever(rtopt: CommandLine) -> None:
    for words in ((), ("http://127.0.0.1:9",), LEVER):
        done = rtopt("apply", *words)
        assert "wanted a URL and --lever, or --resume RUN" in done.line()
        assert done.code == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--objective", "speed"), "known: throughput, ttft, itl, e2e"),
        (("--slo", "itl_p95"), "wanted METRIC=LIMIT"),
        (("--slo", "itl_p95=1.2.3ms"), "wanted METRIC=LIMIT"),
        (("--slo", "latency=3"), "known: throughput"),
        (("--slo", "itl_p95=3kg"), "is in ms, not kg"),
        (("--slo", "itl_p95=0ms"), "must be above 0"),
        (("--slo", "itl_p95=" + "9" * 400), "too large"),
        (("--load", "closed"), "wanted open, or closed:N"),
        (("--load", "closed:\u00b2"), "wanted open, or closed:N"),
        (("--max-minutes", "-1"), "max_minutes=-1: must be above 0"),
        (("--max-minutes", "nan"), "max_minutes: Input should be a finite number"),
        (("--max-exposed", "0"), "max_exposed=0: must be above 0"),
        (("--config", "missing.toml"), "missing.toml: No such file"),
        (("--config", "home"), "home: Is a directory"),
        (("--levers", "missing"), "missing: not a folder"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("command", [("apply", *LEVER), ("tune",)], ids=lambda words: words[0])
def test_a_wrong_flag_is_refused_before_anything_is_recorded(
    rtopt: CommandLine, command: tuple[str, ...], words: tuple[str, str], text: str
) -> None:
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        done = rtopt(*command, url, *words, RTOPT_TOKEN=TOKEN)
    assert text in done.line()
    assert done.code == 2
    assert "GET /rtopt/trace" not in overlay.asked
    assert overlay.value == overlay.start


@pytest.mark.parametrize(
    ("toml", "text"),
    [
        ("profile_sec = 3", "unknown setting profile_sec; known: objective, slos, load, profile_s"),
        ("[gate]\nalhpa = 0.1", "[gate]: unknown setting alhpa; known: alpha, prior"),
        ("[budget]\ntrail = 1", "[budget]: unknown setting trail; known: trials"),
        ('profile_s = "long"', "profile_s: Input should be a valid number"),
        ("profile_s = nan", "profile_s: Input should be a finite number"),
        ("profile_s = -1", "wanted at least one trial, and a recording"),
        ("budget = 5", "budget: Input should be"),
        ("gate = [1]", "gate: Input should be"),
        ("[gate]\nalpha = 2", "alpha=2.0: must be between 0 and 0.5"),
        ("[gate]\nmin_pairs = 2.5", "gate.min_pairs: Input should be a valid integer"),
        ("[gate]\nmax_pairs = 4", "max_pairs=4, and a keep"),
        ('objective = "speed"', "known: throughput, ttft, itl, e2e"),
        ('slos = [{metric = "speed", limit = 1}]', "known: throughput"),
        ('slos = [{metric = "itl_p95"}]', "slos.0.limit: Field required"),
        ('load = {kind = "closed"}', "wanted open without clients, or closed"),
        ('load = {kind = "half-open"}', "load.kind: Input should be 'open' or 'closed'"),
        ("a =", "not TOML"),
        ('"a\\nb" = 1', "unknown setting"),
    ],
    ids=lambda value: value[:24].replace("\n", " "),
)
def test_a_wrong_setting_is_refused_and_named(
    rtopt: CommandLine, tmp_path: Path, toml: str, text: str
) -> None:
    (tmp_path / "run.toml").write_text(toml)
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        done = rtopt("tune", url, "--config", "run.toml", RTOPT_TOKEN=TOKEN)
    assert text in done.line()
    assert done.code == 2
    assert "GET /rtopt/trace" not in overlay.asked


def test_a_file_that_is_no_text_is_no_configuration(rtopt: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe\x00")
    done = rtopt("tune", "http://127.0.0.1:9", "--config", "run.toml")
    assert "not TOML" in done.line()
    assert done.code == 2


@pytest.mark.parametrize("consent", [(), ("--rollback",)])
def test_an_unknown_lever_lists_the_known_ones_before_anything_is_recorded(
    rtopt: CommandLine, consent: tuple[str, ...]
) -> None:
    overlay = Overlay(token=TOKEN)
    with serving(overlay) as url:
        done = rtopt("apply", url, "--lever", "warp", *consent, RTOPT_TOKEN=TOKEN)
    assert "Known: max_num_active_seqs, max_num_scheduled_tokens" in done.line()
    assert done.code == 2
    assert "GET /rtopt/trace" not in overlay.asked
    assert not rtopt.state.exists()


def test_a_broken_lever_names_its_file(rtopt: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "broken.py").write_text("LEVER = 1 / 0\n")
    with serving(Overlay(token=TOKEN)) as url:
        done = rtopt("tune", url, "--levers", "more", RTOPT_TOKEN=TOKEN)
    assert "broken.py: cannot be loaded: ZeroDivisionError" in done.line()
    assert done.code == 2


def test_a_state_folder_that_cannot_be_is_named(rtopt: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(Overlay(token=TOKEN)) as url:
        for place, text in (("relative", "absolute path"), (f"{tmp_path}/file", "cannot be made")):
            done = rtopt("apply", url, *LEVER, RTOPT_TOKEN=TOKEN, XDG_STATE_HOME=place)
            assert text in done.line()
            assert done.code == 2


def test_where_nobody_has_a_home_the_message_says_what_to_set(tmp_path: Path) -> None:
    """A container that runs under a number without a name, and without HOME."""
    code = (
        "import os, pwd, sys\n"
        "def nobody(_): raise KeyError\n"
        "pwd.getpwuid = nobody\n"
        "sys.argv = ['rtopt', 'report', 'x']\n"
        "from rtopt.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "set HOME, or XDG_STATE_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_the_output_may_go_into_a_pipe_that_closes(rtopt: CommandLine) -> None:
    with rtopt.start("--help") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert "Traceback" not in err


def test_serve_takes_no_port_where_somebody_else_answers(rtopt: CommandLine) -> None:
    with serving(Overlay()) as url:
        port = url.rpartition(":")[2]
        token = rtopt.state / "servers" / f"{port}.token"
        token.parent.mkdir(parents=True)
        token.write_text("of the server that runs there")
        done = rtopt("serve", "--port", port)
    assert f"port {port}: Address already in use" in done.line()
    assert done.code == 2
    assert token.read_text() == "of the server that runs there"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--port", "99999"), "must be from 1 to 65535"),
        (("--port", "-1"), "must be from 1 to 65535"),
        (("--", "--port", "8001"), "give it before --"),
    ],
    ids=lambda value: " ".join(value)[:20],
)
def test_serve_refuses_a_port_that_cannot_be(
    rtopt: CommandLine, words: tuple[str, ...], text: str
) -> None:
    done = rtopt("serve", *words)
    assert text in done.line()
    assert done.code == 2
