from __future__ import annotations

import pytest
from pydantic import BaseModel

from penstock.errors import DefinitionError, InvalidInput
from penstock.language.definitions import Pack, command_action, http_action, kubernetes_action
from tests.penstock.language.definitions.refusals import refused

pack = Pack("shop")


class Size(BaseModel):
    width: int


def test_a_command_a_url_and_an_image_are_actions_like_others() -> None:
    resize = command_action(
        "resize",
        ["convert", "-"],
        parameters=Size,
        result={"path": "string"},
        description="Resizes.",
        timeout="1m",
        options={"output": "text"},
    )
    assert resize.document().body == {
        "ref": "shop.resize",
        "executor": "command",
        "options": {"command": ["convert", "-"], "output": "text"},
        "parameters": {
            "type": "object",
            "properties": {"width": {"type": "integer"}},
            "required": ["width"],
            "additionalProperties": False,
        },
        "result": {"type": "object", "properties": {"path": {"type": "string"}}},
        "description": "Resizes.",
        "timeouts": {"attempt": 60},
    }
    assert resize.options == {"command": ["convert", "-"], "output": "text"}
    assert resize.bind({"width": 3}) == {"width": 3}
    with pytest.raises(InvalidInput, match="unknown 'height'"):
        resize.bind({"width": 3, "height": 4})
    with pytest.raises(DefinitionError, match="no Python function"):
        resize()

    assert http_action("notify", "https://example.org/hook").options == {"url": "https://example.org/hook"}
    assert kubernetes_action("train", "acme/train:1", pack="ml").ref == "ml.train"


def test_wrong_options_of_an_executor_are_refused_when_they_are_written() -> None:
    refused(lambda: command_action("x", []), "command: ")
    refused(
        lambda: command_action("x", ["a"], options={"comand": 1}), "options.comand: unknown option", "command"
    )
    refused(lambda: command_action("x", ["a"], timeot=1), "timeot: unknown option", "timeout")
    refused(lambda: http_action("x", "ftp://example.org"), "url: is not an http or https URL")
    refused(lambda: http_action("x", "https://me:secret@example.org"), "url: holds a password", "secret_env")
    refused(lambda: http_action("x", "https://[bad"), "url: is not a URL")
    refused(lambda: kubernetes_action("x", ""), "image: ")
    refused(
        lambda: command_action("x", ["a"], parameters={"a": {"type": "strng"}}), "parameters: a: unknown type"
    )


def test_a_password_in_a_url_is_not_repeated_in_the_error() -> None:
    with pytest.raises(DefinitionError) as raised:
        http_action("x", "https://me:hunter2@example.org")
    assert "hunter2" not in str(raised.value)
