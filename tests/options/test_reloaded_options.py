"""The legal value of every option through the door of `dev`: files are loaded again, taken over, and executions run by them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from penstock.cli.dev_loop import take_over
from penstock.client.client import Client
from penstock.client.local_installation import LocalInstallation
from penstock.language.loading.reload import folders_of
from tests.options.declared_options import options
from tests.options.declaring import prepared

SHOP = """
name: shop
triggers: {paid: {}}
actions: {noop: {function: 'code.work:work'}}
workflows: {flow: {tasks: {t: {action: noop}}}}
"""
ELSEWHERE = ("url", "image", "executor", "route", "labels", "limits", "options", "poll", "position")
"""Options by which an execution runs where no worker of this test is, or that concern all executions."""
BEGUN = "select count(*) from execution where attempt > 0 or finished_at is not null or status = 'running'"


async def test_reload_takes_every_legal_value(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    shop, walk = tmp_path / "shop", tmp_path / "walk"
    for folder in (shop, walk):
        folder.mkdir()
        prepared(folder)
    (shop / "pack.yaml").write_text(SHOP)
    sections: dict[str, dict[str, object]] = {"workflows": {}, "actions": {}}
    for n, option in enumerate(options()):
        if option.has_legal_value and option.path[0] in sections and not {*option.path} & {*ELSEWHERE}:
            sections[option.path[0]][f"n{n}"] = option.entry(option.legal())
    (walk / "pack.yaml").write_text(json.dumps({"name": "walk"}))
    sources = [str(shop), str(walk)]
    async with LocalInstallation.started(tmp_path, modules=sources) as local:
        (walk / "pack.yaml").write_text(json.dumps({"name": "walk", **sections}))
        await take_over(local, sources, folders_of(sources), ["pack.yaml"])
        output = capsys.readouterr().err
        assert "taken" in output, output
        async with Client.connect(local.settings) as client:
            refs = [f"walk.{name}" for entries in sections.values() for name in entries]
            for ref in refs[::4]:
                await client.start(ref)
            async with asyncio.timeout(60):
                while (await client.session.fetch(BEGUN))[0][0] < len(refs) / 8:
                    await asyncio.sleep(0.1)
            await client.result(await client.start("shop.flow"), timeout=60)
            assert not await client.session.fetch("select queue, reason from dead_letter")
