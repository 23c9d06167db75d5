"""Who may import whom, and what is loaded when. The law is DESIGN's and STYLE's; the tables here are its whole text."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

import streamfold
from streamfold.cli import main
from streamfold.providers.registry import PROVIDERS
from tests.conftest import ROOT

PACKAGE = ROOT / "src" / "streamfold"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")
    for path in PACKAGE.rglob("*.py")
)

# -- the law ----------------------------------------------------------------------------------------------------------

LEAVES = ("errors", "limits")  # anyone's: they know nothing of ours
FOLD = (*LEAVES, "blocks", "events", "snapshot", "partial_json", "pieces")
DIALECT = (*LEAVES, "blocks", "events", "partial_json", "payloads", "pieces", "providers._*")
PROVIDING = ("providers._*", "providers.by_shape", "providers.registry")
CORE = (*FOLD, "payloads", "accumulator", "framing.*", "think_tags", *PROVIDING)

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    # module -> modules of ours; the first row that fits counts. A module without a row has no place in the layout.
    "": (),  # __init__: names are loaded when they are asked for
    "__main__": ("cli",),
    "errors": (),
    "limits": (),
    "blocks": LEAVES,
    "events": (*LEAVES, "blocks"),
    "snapshot": (*LEAVES, "blocks", "events"),
    "pieces": (),
    "partial_json": LEAVES,
    "framing": (),
    "framing.*": LEAVES,
    "payloads": (*LEAVES, "blocks"),
    "providers": (),
    "providers._*": DIALECT,
    "providers.registry": DIALECT,
    "providers.by_shape": (*DIALECT, "providers.registry"),
    "providers.*": DIALECT,
    "accumulator": FOLD,
    "think_tags": (*LEAVES, "blocks", "events", "pieces"),
    "echo": (),
    "echo.*": (*LEAVES, "blocks", "events", "snapshot", "payloads", "echo._*"),
    "foreign": CORE,
    "position": CORE,
    "decoder": (*CORE, "foreign", "position"),
    "live": (*CORE, "decoder"),
    "live_session": (*CORE, "decoder"),
    "resume": (*CORE, "decoder"),
    "client": ("errors", "decoder", "providers.registry", "resume", "transports._course", "transports.http"),
    "encoders": (),
    "encoders.*": (*FOLD, "payloads", "accumulator", "framing.*", "encoders._*"),
    "stream": (*LEAVES, "blocks", "events", "framing.*"),
    "astream": (*LEAVES, "blocks", "events", "framing.*", "stream"),
    "timing": (*CORE, "decoder"),
    "otel": ("errors", "snapshot", "timing"),
    "costs": ("errors", "events", "snapshot"),
    "unified": (*CORE, "decoder", "live", "resume", "stream", "astream", "transports._base"),
    "transports": ("transports.*",),
    "transports.replay": (*LEAVES, "recording.*"),
    "transports.recording": ("errors", "recording.files"),
    "transports._course": (*CORE, "decoder", "resume", "recording._redact"),
    "transports.websocket": (*CORE, "live_session", "transports._*", "recording._redact"),
    "transports.*": (*CORE, "decoder", "live_session", "resume", "stream", "astream", "unified", "transports._*"),
    "relay": ("relay.*",),
    "relay.app": (*CORE, "decoder", "resume", "encoders.*", "relay.*", "stream", "astream", "unified", "transports.*"),
    "relay.*": (*CORE, "decoder", "resume", "encoders.*", "relay._*"),
    "lint": (),
    "lint.rules": (),
    "lint._bytes": ("framing.eventstream",),
    "lint.*": (*CORE, "providers.*", "decoder", "stream", "lint.*"),
    "recording": (),
    "recording.*": (*CORE, "decoder", "recording.*"),
    "views": (),
    "views.*": (*FOLD, "views.*"),
    "testing": ("transports.replay",),
    "testing.*": ("transports.replay",),
    "cli": ("*",),
    "cli.*": ("*",),
}

TYPES_ONLY = {  # imported under TYPE_CHECKING, which loads nothing
    "": ("*",),
    "errors": ("events",),
}

LATE: dict[str, tuple[str, ...]] = {  # imported inside a function
    "snapshot": ("echo.*",),
    "testing": ("testing._fixtures",),  # pytest comes with them
    "cli": ("*",),
    "cli.*": ("*",),
}

BY_NAME = {  # who may import what its source does not name
    "": "the public names, when they are asked for",
    "providers.registry": "the dialect that was asked for",
    "cli._main": "the command that was asked for",
    "echo._surfaces": "the echo of the surface that was asked for",
}

WAITS = frozenset({"asyncio", "socket", "select", "selectors", "threading", "subprocess", "http", "urllib", "ssl"})
CHANCE = frozenset({"time", "datetime", "random", "secrets", "uuid"})
THIRD_PARTIES = {  # module -> what it may import from outside; every other one msgspec alone
    "transports.replay": frozenset({"starlette", "uvicorn"}),
    "transports.*": frozenset({"httpx2", "httpx", "anyio", "websockets"}),
    "recording._packing": frozenset({"zstandard"}),
    "recording._vcr": frozenset({"yaml"}),
    "testing.*": frozenset({"pytest"}),
    "relay.app": frozenset({"starlette", "anyio"}),
    "costs": frozenset({"genai_prices"}),  # when an estimate is asked for
    "cli": frozenset({"click", "rich"}),
    "cli.*": frozenset({"click", "rich"}),
}
STANDARD_LIBRARY = {  # module -> what it may not import of the standard library
    "framing.json_array": WAITS | CHANCE,  # json is its second judge of an item, as its source explains
    "framing.*": WAITS | CHANCE | {"json"},
    "transports.*": frozenset(),
    "resume": (WAITS | CHANCE) - {"urllib"},  # addresses are taken apart and put together by urllib.parse
    "relay.app": frozenset(),
    "cli": frozenset(),
    "cli.*": frozenset(),
    "recording.files": WAITS | CHANCE - {"time", "datetime"},  # when each read came
    "recording._redact": (WAITS | CHANCE) - {"urllib"},  # names in addresses are unquoted by urllib.parse
    "recording.answers": (WAITS | CHANCE) - {"urllib"},  # and taken apart
    "*": WAITS | CHANCE,
}


class Found(NamedTuple):
    """What a module imports, and from where in its text."""

    name: str
    late: bool
    types_only: bool


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "__init__")
def test_imports_point_one_way(module: str) -> None:
    assert row(MAY_IMPORT, module) is not None, "no row for it in MAY_IMPORT"
    for found in imports_of(module):
        name = ours(found.name)
        if name is None:
            continue
        allowed = row(MAY_IMPORT, module) or ()
        if found.types_only:
            allowed += row(TYPES_ONLY, module) or ()
        if found.late:
            allowed = row(LATE, module) or ()
        assert fits(name, allowed), f"{module} imports {name}{' late' if found.late else ''}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "__init__")
def test_dialects_do_not_import_each_other(module: str) -> None:
    if fits(module, ("providers.*",)) and module not in PROVIDING:
        names = {ours(found.name) or "" for found in imports_of(module)}
        assert not {name for name in names if fits(name, ("providers.*",)) and not fits(name, ("providers._*",))}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "__init__")
def test_the_rest_of_the_world_is_imported_where_the_layout_says(module: str) -> None:
    outside = {found.name.partition(".")[0] for found in imports_of(module) if not found.types_only} - {"streamfold"}
    standard = outside & sys.stdlib_module_names
    assert outside - standard - {"msgspec"} <= (row(THIRD_PARTIES, module) or frozenset())
    assert not standard & (row(STANDARD_LIBRARY, module) or frozenset())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "__init__")
def test_nothing_is_imported_behind_the_law(module: str) -> None:
    called = {name_of(node.func) for node in ast.walk(tree(module)) if isinstance(node, ast.Call)}
    assert not called & {"import_module", "__import__"} or module in BY_NAME


FORMS = {
    "a module": ("import streamfold.errors", Found("streamfold.errors", False, False)),
    "of the package": ("from streamfold import errors", Found("streamfold.errors", False, False)),
    "a name": ("from streamfold.errors import UsageError", Found("streamfold.errors.UsageError", False, False)),
    "a neighbour": ("from . import _table", Found("streamfold.providers._table", False, False)),
    "from above": ("from ..errors import UsageError", Found("streamfold.errors.UsageError", False, False)),
    "late": ("def f():\n    async def g():\n        import json", Found("json", True, False)),
    "for checkers": ("if TYPE_CHECKING:\n    import json", Found("json", False, True)),
}


@pytest.mark.parametrize(("source", "found"), FORMS.values(), ids=FORMS.keys())
def test_no_form_of_import_goes_unseen(source: str, found: Found) -> None:
    assert list(imports(ast.parse(source), "providers")) == [found]
    assert ours(found.name) in ("errors", "providers._table", None)


def row(table: dict[str, Any], module: str) -> Any:
    """The first row that fits the module."""
    return next((table[key] for key in table if key == module or (key and fits(module, (key,)))), None)


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def ours(name: str) -> str | None:
    """The module of ours that the name means, without the package's own name; None for others' modules."""
    if name.partition(".")[0] != "streamfold":
        return None
    name = name.partition(".")[2]
    return name if name in MODULES else name.rpartition(".")[0]  # from streamfold.errors import UsageError


def imports_of(module: str) -> Iterator[Found]:
    package = module if (PACKAGE / Path(*module.split("."))).is_dir() else module.rpartition(".")[0]
    return imports(tree(module), package)


def imports(source: ast.Module, package: str) -> Iterator[Found]:
    """Every import statement of a module in that package of ours, as dotted names."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    late = {inner for node in ast.walk(source) if isinstance(node, functions) for inner in ast.walk(node)}
    guards = (node for node in ast.walk(source) if isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING")
    types_only = {inner for node in guards for inner in ast.walk(node)}
    for node in ast.walk(source):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = ["streamfold", *filter(None, package.split("."))]
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            names = [".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names]
        for name in names:
            yield Found(name, node in late, node in types_only)


@cache
def tree(module: str) -> ast.Module:
    path = PACKAGE / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text())


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# -- what is loaded when ----------------------------------------------------------------------------------------------


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after this code, beyond those of a bare one."""
    show = "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    return modules_of(code + show) - modules_of(show)


@cache
def modules_of(code: str) -> set[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


def providers_in(modules: set[str]) -> set[str]:
    """The modules of dialects among them."""
    names = {name.removeprefix("streamfold.providers.") for name in modules if name.startswith("streamfold.providers.")}
    return {name for name in names if not name.startswith("_") and name != "registry"}


EVERYTHING = "import streamfold\nfor name in streamfold.__all__: getattr(streamfold, name)"
NEUTRAL = """
import streamfold
frames = list(streamfold.parse_event_stream([b'data: 1\\n\\n']))
mapped = streamfold.map_event_stream([b'data: 1\\n\\n'], lambda frame: [streamfold.TextDelta(0, frame.data)])
accumulator = streamfold.StreamAccumulator()
for event in mapped: accumulator.push(event)
assert accumulator.snapshot().text == '1'
"""
CHAT = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ANTHROPIC = b'data: {"type":"message_start","message":{"id":"m"}}\n\ndata: {"type":"message_stop"}\n\n'


@pytest.mark.parametrize("code", ["import streamfold", EVERYTHING], ids=["the package", "every name"])
def test_importing_loads_msgspec_and_no_other_third_party(code: str) -> None:
    its_own = loaded("import msgspec, msgspec._utils")  # which loads typing_extensions where that is installed
    tops = {name.partition(".")[0] for name in loaded(code) - its_own}
    assert tops - sys.stdlib_module_names <= {"streamfold", "msgspec"}
    assert "asyncio" not in tops


def test_the_package_alone_loads_no_module_of_ours() -> None:
    assert {name for name in loaded("import streamfold") if name.startswith("streamfold")} == {"streamfold"}


def test_the_neutral_layer_loads_no_provider() -> None:
    modules = loaded(NEUTRAL)
    assert {"streamfold.stream", "streamfold.accumulator"} <= modules
    assert not [name for name in modules if name.startswith("streamfold.providers")]
    assert not {"streamfold.decoder", "streamfold.payloads"} & modules


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_loads_its_own_dialect_alone(provider: str) -> None:
    code = f"import streamfold\nwith streamfold.iter_unified([b' '], {provider!r}) as stream: list(stream)"
    assert providers_in(loaded(code)) <= {PROVIDERS[provider].module, "by_shape"}


@pytest.mark.parametrize(
    ("body", "module"), [(CHAT, "openai_chat"), (ANTHROPIC, "anthropic")], ids=["openai-chat", "anthropic"]
)
def test_auto_loads_the_dialect_it_finds(body: bytes, module: str) -> None:
    code = f"import streamfold\nassert streamfold.fold([{body!r}]).outcome == 'complete'"
    assert providers_in(loaded(code)) == {module, "by_shape"}


def test_an_answer_loads_no_echo_until_it_is_asked_for_one() -> None:
    code = f"import streamfold\nanswer = streamfold.fold([{CHAT!r}])\nanswer.to_json()"
    assert not [name for name in loaded(code) if name.startswith("streamfold.echo")]
    echoes = {name for name in loaded(f"{code}\nanswer.echo()") if name.startswith("streamfold.echo.")}
    dialects = {name for name in echoes if not name.startswith("streamfold.echo._")}
    assert dialects == {"streamfold.echo.openai_chat"}


def test_nothing_of_ours_loads_asyncio_under_trio() -> None:
    pytest.importorskip("trio")
    code = f"""
import trio, streamfold
async def main():
    async def source():
        await trio.lowlevel.checkpoint()
        yield {CHAT!r}
    async with streamfold.aiter_unified(source()) as stream:
        assert [event.type async for event in stream][-1] == 'done'
trio.run(main)
"""
    assert "asyncio" not in loaded(code)


NEEDED_BY = {  # modules of ours that few commands need -> those
    "cli.stats": {"stats"},
    "cli.convert": {"convert"},
    "lint": {"check"},
    "transports": set(),  # replay loads its server when it serves
    "costs": {"stats"},
    "recording._har": {"convert"},
}


def test_a_command_loads_what_it_needs() -> None:
    code = "from streamfold.cli import main\nassert main.commands[{!r}].name == {!r}"
    modules = {name: loaded(code.format(name, name)) for name in main.commands}
    for module, commands in NEEDED_BY.items():
        found = {name for name in modules if f"streamfold.{module}" in modules[name]}
        assert found == commands, module
    assert not [name for name in modules if "rich" in modules[name]]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=["help", "version", "nothing"])
def test_what_is_no_command_loads_none(arguments: list[str]) -> None:
    code = f"from streamfold.cli import main\ntry: main({arguments})\nexcept SystemExit: print(end='\\n')"
    names = {name.removeprefix("streamfold.cli.") for name in loaded(code)}
    assert not names & set(main.commands)


# -- the public names -------------------------------------------------------------------------------------------------


def test_all_says_nothing_twice() -> None:
    assert sorted(set(streamfold.__all__)) == sorted(streamfold.__all__)


@pytest.mark.parametrize("name", streamfold.__all__)
def test_a_public_name_is_there(name: str) -> None:
    value = getattr(streamfold, name)
    home = importlib.import_module(f"streamfold.{streamfold._HOME_OF[name]}")  # pyright: ignore[reportPrivateUsage]
    assert getattr(home, name) is value
    assert name in home.__all__
    assert name in dir(streamfold)


def test_checkers_and_the_interpreter_see_the_same_names() -> None:
    for_checkers = {found.name.rpartition(".")[2] for found in imports_of("") if found.types_only}
    for_checkers -= set(streamfold._WITH_EXTRAS)  # pyright: ignore[reportPrivateUsage]
    assert for_checkers == set(streamfold.__all__) == set(streamfold._HOME_OF)  # pyright: ignore[reportPrivateUsage]


def test_modules_with_extras_are_reached_by_name_and_loaded_then() -> None:
    assert "httpx2" not in loaded("import streamfold")
    assert {"httpx2", "anyio"} <= loaded("import streamfold\nstreamfold.client.open_stream")
    assert "client" in dir(streamfold)


def test_without_its_extra_a_module_says_what_to_install() -> None:
    code = """
import sys, streamfold
sys.modules['httpx2'] = None
try: streamfold.client
except streamfold.UsageError as fault: assert 'streamfold[client]' in str(fault)
else: raise AssertionError
"""
    loaded(code)


def test_a_star_import_brings_the_public_names_and_no_other() -> None:
    space: dict[str, Any] = {}
    exec("from streamfold import *", space)
    assert set(space) - {"__builtins__"} == set(streamfold.__all__)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    assert not hasattr(streamfold, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        streamfold.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", streamfold.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    value = getattr(streamfold, name)
    if isinstance(value, type | FunctionType):
        assert value.__doc__
    else:  # an alias or a constant: the string below it is its documentation
        assert name in documented(streamfold._HOME_OF[name])  # pyright: ignore[reportPrivateUsage]
    if isinstance(value, type):
        for attribute, member in vars(value).items():
            if isinstance(member, FunctionType | property) and not attribute.startswith("_"):
                assert inspect.getdoc(getattr(value, attribute)), f"{name}.{attribute}"


def documented(module: str) -> set[str]:
    """Names that are assigned on the module's level with a string right below."""
    found: set[str] = set()
    body = tree(module).body
    for node, below in pairwise(body):
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            if isinstance(node, ast.AnnAssign):
                found.add(name_of(node.target))
            elif isinstance(node, ast.Assign):
                found |= {name_of(target) for target in node.targets}
    return found


# -- the wheel --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of what is built from."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    tree_ = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tree_)
    (tree_ / "README.md").touch()
    shutil.copytree(PACKAGE, tree_ / "src" / "streamfold", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tree_ / "dist")]
    run = subprocess.run(command, cwd=tree_, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return next((tree_ / "dist").glob("*.whl"))


def test_the_wheel_holds_the_package_and_its_marker_of_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ours_ = (path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".typed"))
    files = {f"streamfold/{path.relative_to(PACKAGE)}" for path in ours_}
    assert "streamfold/py.typed" in files
    assert {name for name in names if ".dist-info/" not in name} == files


def test_the_wheel_asks_for_msgspec_alone(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    wanted = [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert [line.partition(">")[0] for line in wanted if "extra ==" not in line] == ["msgspec"]


def test_the_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    code = f"import streamfold; print(streamfold.__file__); print(streamfold.fold([{CHAT!r}]).text)"
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines() == [f"{wheel}/streamfold/__init__.py", "x"], run.stderr


def test_modules_do_not_shadow_each_other() -> None:
    """A lazily loaded name must not hide a module of the same name, nor the other way round."""
    assert not [name for name in streamfold.__all__ if isinstance(getattr(streamfold, name), ModuleType)]
