"""Does what a page says, as its reader would: saves the files, starts an installation, types the commands."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import shlex
import socket
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from penstock.language.loading import Definitions, load
from penstock.service.assembly import Stop
from penstock_api.main import serve
from tests.docs.fences import Code, Command, File, Part, fits
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

NOT_RUN = (
    "pip install",
    "python -m venv",
    ". .venv",
    "export ",
    "mkdir ",
    "openssl ",
    "cd ",
    "systemctl ",
    "docker ",
    "kubectl ",
    "helm ",
    "celery ",
    "penstock dev",
    "penstock demo",
    "penstock executor",
    "penstock worker ",
    "penstock api",
    "penstock migrate",
    "penstock users ",
    "penstock dead-letters replay",
)
"""What starts services, installs something, or needs a person: the test starts an installation in their place."""

ASKING = {
    *("actions", "dead-letters", "doctor", "events", "executions", "history", "inquiries", "logs"),
    *("queues", "rules", "schedule", "show", "why", "limit", "workers", "workflow"),
}
"""Commands that may be typed again until what they wait for has happened."""

EXPORTED = {"PENSTOCK_TOKEN", "WEBHOOK_SECRET"}
"""Variables that the commands after them need. The addresses of servers are the test's own."""

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
TOKEN = re.compile(r"pst_[\w-]{20,}")
PATIENCE = 20.0


class Reader:
    """One page, one installation, one folder."""

    def __init__(self, house: Installation, folder: Path, export: Callable[[str, str], None]) -> None:
        self.house = house
        self.export = export
        self.folder = folder
        self.id = ""
        self.address = ""
        self.token = ""

    async def read(self, parts: list[Part]) -> None:
        """Raises AssertionError where the page promises something else than what happens."""
        definitions = self.saved([part for part in parts if isinstance(part, File)])
        await self.house.start(*definitions)
        for kind in ("executor", "worker") if definitions.actions else ("executor",):
            await self.house.until("select from process where kind = $1", kind)  # what is up is seen to be up
        lines = [part.line for part in parts if isinstance(part, Command)]
        asks_the_api = any(line.startswith("curl ") for line in lines)
        makes_tokens = any(line.startswith("penstock tokens create") for line in lines)
        async with (
            self.api("token" if makes_tokens else "open") if asks_the_api else contextlib.nullcontext()
        ):
            for part in parts:
                if isinstance(part, Command):
                    await self.type(part)
                elif isinstance(part, Code):
                    await self.run(part)

    def saved(self, files: list[File]) -> Definitions:
        for file in files:
            path = self.folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as written:
                written.write(file.text)
        return load(self.folder)

    @contextlib.asynccontextmanager
    async def api(self, access: str) -> AsyncIterator[None]:
        """An HTTP API on a free port, for as long as this lasts."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        stop = Stop()
        settings = self.house.settings(api_port=port, api_access=access)
        serving = asyncio.create_task(serve(settings, stop))
        await asyncio.wait({serving, asyncio.ensure_future(stop.began.wait())}, return_when="FIRST_COMPLETED")
        self.address = f"127.0.0.1:{port}"
        yield
        stop.ask()
        await serving

    async def type(self, command: Command) -> None:
        if command.line.startswith("export "):
            self.exports(command.line)
        if command.line.startswith(NOT_RUN):
            return
        line = self.as_typed(command.line)
        words = shlex.split(line, comments=True)
        if words[:3] == ["python", "-m", "pytest"]:
            words = [
                sys.executable,
                "-m",
                "pytest",
                *("-p", "no:cacheprovider", "-p", "no:xdist"),
                *words[3:],
            ]
        assert words[0] in ("penstock", "curl", sys.executable), f"nobody runs this: {command.line}"
        output = await self.answer(words)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE if words[1] in ASKING else 0.1):
                while not fits(output, command.printed):
                    await asyncio.sleep(0.05)
                    if words[1] in ASKING:
                        output = await self.answer(words)
        assert fits(output, command.printed), (
            f"$ {line}\nprints:\n{output}\nthe page says:\n{command.printed}"
        )
        if ids := UUID.findall(output):
            self.id = ids[-1]
        if ids := TOKEN.findall(output):
            self.token = ids[-1]

    def exports(self, line: str) -> None:
        for name, value in (
            word.split("=", 1) for word in shlex.split(self.as_typed(line), comments=True)[1:]
        ):
            if name in EXPORTED:
                self.export(name, value)

    def as_typed(self, text: str) -> str:
        """With what the reader has been given in the place of what the page says."""
        for placeholder, meant in (
            ("http://127.0.0.1:8000", f"http://{self.address}"),
            ("https://penstock.example.org", f"http://{self.address}"),
            ("$TOKEN", self.token),
            ("pst_...", self.token),
        ):
            text = text.replace(placeholder, meant)
        return re.sub(r"\bID\b", self.id, text)

    async def answer(self, words: list[str]) -> str:
        if words[0] == "penstock":
            result = await penstock(*words[1:])
            assert not result.err.startswith("Usage:"), f"there is no such command or option:\n{result.err}"
            return re.sub(r"^execution .*\n", "", result.err, flags=re.M) + result.out
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return out.decode()

    async def run(self, code: Code) -> None:
        text = self.as_typed(code.text) if self.address else code.text
        if "asyncio.run(" in text or "with SyncHttpClient(" in text:  # a whole program
            output = await self.answer([sys.executable, "-c", text])
            assert fits(output, "\n".join(code.promised)), f"{code.text}\nprints:\n{output}"
            return
        names: dict[str, object] = {}
        exec(f"async def example():\n{textwrap.indent(text, '    ')}", names)  # a page has no file to import
        printed = io.StringIO()
        async with asyncio.timeout(PATIENCE):
            with contextlib.redirect_stdout(printed):
                await names["example"]()  # type: ignore[operator]
        output = printed.getvalue()
        assert fits(output, "\n".join(code.promised)), f"{code.text}\nprints:\n{output}"
