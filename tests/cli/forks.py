"""Processes of the command line that need not load it anew: each is a fork of one that has.

As a program it is that one: it knows the command line, its standard streams are pipes, and for each request it becomes,
forked, what ``python -m streamfold`` is once it has loaded. Ctrl-C, terminals, what a fresh interpreter loads and
how one ends are not its business: :class:`tests.cli.conftest.Started` starts one.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any

from streamfold.cli.commands import COMMANDS
from streamfold.providers.registry import PROVIDERS

__all__ = ["Forks"]

_LOADED = (
    *(f"streamfold.cli.{name}" for name in COMMANDS),
    *(f"streamfold.providers.{dialect.module}" for dialect in PROVIDERS.values()),
    "genai_prices",
    "rich.console",
    "rich.table",
    "rich.text",
)
_REQUEST_BYTES = 65536
_PATIENCE_S = 60


class Forks:
    """The one that knows the command line, and what is asked of it; it ends when its socket is closed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_PATIENCE_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        self._told = self._socket.makefile()
        self._threads = ThreadPoolExecutor(3)

    def close(self) -> None:
        """End it."""
        self._told.close()
        self._socket.close()
        self._process.communicate(timeout=_PATIENCE_S)
        self._threads.shutdown()

    def run(self, arguments: list[str], stdin: bytes) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        (theirs_in, to_it), (out, theirs_out), (said, theirs_said) = (os.pipe() for _ in range(3))
        theirs = [theirs_in, theirs_out, theirs_said]
        socket.send_fds(self._socket, [json.dumps([os.getcwd(), *arguments]).encode()], theirs)
        for pipe in theirs:
            os.close(pipe)
        fed = self._threads.submit(_feed, to_it, stdin)
        outputs = [self._threads.submit(_read, pipe) for pipe in (out, said)]
        child, code = int(self._told.readline()), None
        try:
            code = int(self._told.readline())
        finally:
            if code is None:
                os.kill(child, 9)
        fed.result()
        return subprocess.CompletedProcess(arguments, code, *(output.result().decode() for output in outputs))


def _feed(pipe: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(pipe, "wb") as file:
        file.write(data)


def _read(pipe: int) -> bytes:
    with open(pipe, "rb") as file:
        return file.read()


def _serve(requests: socket.socket) -> None:
    """Fork for each request, and tell what became of it; returns in the forks, and when nobody asks any more."""
    while True:
        request, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 3)
        if not request:
            sys.exit()
        child = os.fork()
        if child == 0:
            for standard, file in enumerate(files):
                os.dup2(file, standard)
                os.close(file)
            folder, *sys.argv[1:] = json.loads(request)
            os.chdir(folder)
            return
        for file in files:
            os.close(file)
        requests.send(b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        requests.send(b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    for name in _LOADED:
        import_module(name)
    gc.freeze()  # what the forks share stays shared
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        _serve(asked)
    try:
        runpy.run_module("streamfold", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        code: Any = end.code  # a number, of this command line
        os._exit(code)  # taken apart as an interpreter ends, all that is shared would be copied: 30 ms, of 40
