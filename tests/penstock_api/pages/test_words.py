"""The words of the pages: the rules that hold for each page, and the sentences that depend on a state."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import httpx
import orjson
import pytest

from penstock.language.moves import MEANINGS, STATUSES
from penstock.language.terms.ids import new_id
from penstock.language.terms.waits import SLEEP_CAUSES, WAIT_CAUSES
from penstock.operate.activity import ActivityWatch
from penstock.operate.why.answer import count
from penstock_api.pages.page import MENU
from penstock_api.pages.schema_form import fields
from penstock_api.pages.templating import LIST_COMMANDS, TEMPLATES, shown_status, with_pages
from penstock_api.requests.code_elements import with_code
from tests.penstock.cli.test_hostile_arguments import commands
from tests.penstock_api.pages.conftest import Site
from tests.penstock_api.pages.test_page import PAGES

BEGUN = datetime(2030, 1, 31, 9, tzinfo=UTC)
SINCE_AN_AGE = re.compile(r"since <time[^>]*data-ago")
"""An age is not an instant: "since 5 s ago" is not English."""


def visitor(site: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.address, headers={"accept": "text/html"}, timeout=30)


async def test_no_page_says_since_an_age(site: Site) -> None:
    async with visitor(site) as client:
        texts = {name: (await client.get(path.format(**site.ids))).text for name, path in PAGES.items()}
    assert [name for name, text in texts.items() if SINCE_AN_AGE.search(text)] == []


async def test_page_of_inquiries_says_that_there_are_more(site: Site) -> None:
    async with visitor(site) as client:
        limited = (await client.get("/inquiries?limit=1")).text
        whole = (await client.get("/inquiries?limit=1000")).text
    assert limited.count('class="ask"') == 1
    assert "Only the newest 1 inquiries are shown." in limited
    assert 'href="/inquiries?limit=1000"' in limited
    assert "Only the newest" not in whole


async def test_waits_are_shown_as_durations(site: Site) -> None:
    async with visitor(site) as client:
        inquiries = (await client.get("/inquiries")).text
        limit = (await client.get("/limits/depot.gate")).text
    for text in (inquiries, limit):
        assert re.search(r"<time [^>]*data-lasting>for [\d.]+ \w+</time>", text), text[-2000:]


async def test_local_access_has_a_name_and_no_account(site: Site) -> None:
    async with visitor(site) as client:
        account = (await client.get("/account")).text
    assert "Not signed in (local access)" in account
    assert "Local access: you do not have to sign in." in account


async def test_event_page_names_the_action_of_a_rule_without_match(site: Site) -> None:
    async with visitor(site) as client:
        event = (await client.get(f"/events/{site.ids['event']}")).text
    assert "(action depot.check)</span>: the condition `payload.order == 13` is false" in event


async def test_form_says_empty_instead_of_null(site: Site) -> None:
    async with visitor(site) as client:
        texts = [
            (await client.get(path)).text for path in ("/subscriptions", "/webhooks", "/tokens", "/users")
        ]
    assert [re.findall(r"[^<>]*null:[^<>]*", text) for text in texts] == [[]] * len(texts)
    assert "Only executions of this tenant are reported. Empty: executions of all tenants." in texts[0]


async def test_account_explains_each_scope(site: Site) -> None:
    async with visitor(site) as client:
        account = (await client.get("/account")).text
    explained = re.findall(r"<li><code>(\w+)</code>: ", account)
    assert explained == ["read", "operate", "publish", "start", "answer", "define", "admin", "work"]


def test_key_of_a_limit_is_shown_as_in_the_terminal() -> None:
    template = TEMPLATES.from_string("{{ key | key_of(by) }}")
    assert template.render(key='["acme",3]', by=["customer", "size"]) == "customer=acme, size=3"
    assert template.render(key="", by=[]) == ""


async def test_audit_without_rows_says_so(site: Site) -> None:
    rows = await site.house.rows("select count(*) as n from audit")
    async with visitor(site) as client:
        audit = (await client.get("/audit")).text
    assert ("The audit log is empty" in audit) == (rows[0]["n"] == 0)


COMMAND = re.compile(r"penstock [a-z-]+ <a [^>]*>([^<]+)</a>")


async def test_commands_on_pages_have_whole_ids(site: Site) -> None:
    async with visitor(site) as client:
        pages = [(await client.get(path.format(**site.ids))).text for path in PAGES.values()]
    ids = [id for text in pages for id in COMMAND.findall(text)]
    assert str(site.ids["asks"]) in ids
    assert {len(id) for id in ids} == {36}


async def test_workflow_page_has_the_form_of_the_question_it_waits_for(site: Site) -> None:
    asks = "select e.id from execution e join inquiry i on i.execution_id = e.id where e.parent = $1"
    await site.house.until(asks, site.ids["tour"])
    [[id]] = await site.house.rows(asks, site.ids["tour"])
    async with visitor(site) as client:
        text = (await client.get(f"/executions/{site.ids['tour']}")).text
    form = text.partition(
        f'data-api="POST /api/v1/inquiries/{id}/answer" data-then="/executions/{site.ids["tour"]}"'
    )[2]
    assert ">Approve</button>" in form.partition("</form>")[0]
    assert f'<a href="/executions/{id}">Show the execution that asks</a>' in text


async def test_signal_form_names_the_awaited_signal(site: Site) -> None:
    client = site.house.client
    id = await client.start("depot.pack_up", {"parcels": 1})
    await site.house.until("select from suspended where execution_id = $1 and signals <> '[]'", id)
    async with visitor(site) as browser:
        text = (await browser.get(f"/executions/{id}")).text
    assert 'id="signal-name" type="text" value="fetched"' in text
    await client.signal(id, "fetched", "gone")
    await client.result(id, timeout=30)


@pytest.mark.parametrize(
    ("default", "sentence"),
    [
        (None, "If no answer comes, the execution times out."),
        (False, "If no answer comes, the answer is no."),
    ],
)
async def test_pages_name_the_outcome_without_an_answer(site: Site, default: Any, sentence: str) -> None:
    client = site.house.client
    id = await client.start("depot.confirm")
    await site.house.until("select from inquiry where execution_id = $1", id)
    await site.house.rows(
        "update inquiry set due_at = clock_timestamp() + interval '2 days', default_answer = $2::text::jsonb"
        " where execution_id = $1 returning 1",
        id,
        None if default is None else orjson.dumps(default).decode(),
    )
    async with visitor(site) as browser:
        for path in ("/inquiries", f"/executions/{id}"):
            text = (await browser.get(path)).text
            assert sentence in text
            assert "times out in" not in text
    await client.cancel(id, reason="the test is over")


async def test_lists_of_runs_have_titles_on_every_page(site: Site) -> None:
    async with visitor(site) as client:
        overview, runs, all_ = [
            (await client.get(path)).text for path in ("/", "/actions/depot.drive", "/executions")
        ]
    assert "</a> trip 4 <code" in overview.partition("Newest failures")[2]
    assert "</a> trip 4 <code" in runs
    assert "</a> trip 4 <code" in all_
    async with visitor(site) as client:
        page = (await client.get(f"/executions/{site.ids['failed']}")).text
        children = (await client.get(f"/executions?parent={site.ids['tour']}")).text
    assert f"<title>trip 4 {str(site.ids['failed'])[-8:]} · Penstock</title>" in page
    assert "</a> May the tour begin? <code" in children


async def test_list_and_page_count_the_same_attempts_of_a_function(site: Site) -> None:
    client = site.house.client
    id = await client.start("depot.pack_up", {"parcels": 1})
    await site.house.until("select from suspended where execution_id = $1 and signals <> '[]'", id)
    await client.signal(id, "fetched", "gone")
    await client.result(id, timeout=30)
    [[attempts]] = await site.house.rows("select attempt from execution where id = $1", id)
    async with visitor(site) as browser:
        text = (await browser.get(f"/executions/{id}")).text
        workflow = (await browser.get(f"/executions/{site.ids['good']}")).text
    assert attempts > 1
    number = attempts - 1
    words = f"(the first start, {count(number, 'continuation')} after a wait, 0 retries)"
    assert f'<dt>attempts<dd>{attempts} <span class="dim">{words}</span>' in text
    assert " attempts." not in text.replace("in all attempts.", "")
    assert "<dt>attempts" not in workflow
    async with visitor(site) as browser:
        runs = (await browser.get("/executions?action=depot.pack_up")).text
    row = runs.partition(f"/executions/{id}")[2].partition("</tr>")[0]
    title = "This number counts the first start of the durable function, one start after each wait, and the retries."
    assert f'<td class="figure" data-name="attempts" title="{title}">{attempts}</td>' in row
    assert "<dt>tries" not in text + workflow


async def test_rerun_among_the_commands_links_the_new_run(site: Site) -> None:
    client = site.house.client
    old = await client.start("depot.weigh", {"parcel": 3})
    await client.result(old, timeout=30)
    new = await client.rerun(old, by="user:ada")
    async with visitor(site) as browser:
        head, _, commands = (await browser.get(f"/executions/{old}")).text.partition("Commands from people")
    assert f'<dt>rerun as<dd><a href="/executions/{new}">{str(new)[-8:]}</a>' in head
    assert "<b>rerun</b>, user:ada, " in commands
    assert f'<a href="/executions/{new}">{str(new)[-8:]}</a>' in commands.partition("</section>")[0]


async def test_new_webhook_needs_a_secret_and_a_changed_one_does_not(site: Site) -> None:
    async with visitor(site) as browser:
        new, changed = [(await browser.get(path)).text for path in ("/webhooks", "/webhooks?change=parcels")]
    assert re.search(r'data-at="[^"]*secret[^"]*"[^>]* required>', new)
    assert not re.search(r'data-at="[^"]*secret[^"]*"[^>]* required>', changed)
    assert "an object of templates, such as" in new
    assert '<option value="depot.placed">' in new
    assert "A random secret, if you need one" in new
    assert "A random secret" not in changed


async def test_label_of_an_execution_links_the_list_of_its_executions(site: Site) -> None:
    id = await site.house.client.start("depot.weigh", {"parcel": 5}, labels={"customer": "a b"})
    async with visitor(site) as browser:
        text = (await browser.get(f"/executions/{id}")).text
        listed = (await browser.get("/executions?label=customer%3Da+b")).text
    assert '<a class="tag" href="/executions?label=customer%3Da+b">customer=a b</a>' in text
    assert f'href="/executions/{id}"' in listed


async def test_inquiry_names_the_run_and_the_task_that_asks(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get("/inquiries")).text
    assert re.search(r'Asked by <a href="/executions/[0-9a-f-]{36}">[^<]+</a>( \([^)]*\))?\. ', text)
    inner = re.search(
        r'">depot.tour</a>, task “\w+” \(<a href="/executions/([0-9a-f-]{36})">([0-9a-f]{8})</a>\)\.',
        text,
    )
    assert inner is not None
    assert inner[1].endswith(inner[2])


async def test_limit_by_key_says_where_its_slots_are(site: Site) -> None:
    limits = site.house.client.limits
    await limits.set("depot.each", max=2, scope="depot.weigh", by=["parcel"])
    async with visitor(site) as browser:
        text = (await browser.get("/limits")).text
    await limits.remove("depot.each")
    assert '<td class="bar"><a href="#lines">by key</a>' in text
    assert "0 in use, at most 2 for each key" in text


async def test_failure_is_shown_as_text_below_its_sentence(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get(f"/executions/{site.ids['broke']}")).text
    assert "<h2>Cause</h2>" not in text, "the error has the same sentence"
    for section in (text.partition("<h2>Error</h2>")[2], text.partition("<h2>Attempts</h2>")[2]):
        error, _, traceback = section.partition("</p>")
        assert '<p class="problem">NonRetryable: the box is broken ' in error
        assert "&#34;traceback&#34;: " not in section
        frames = traceback.partition("</pre>")[0]
        assert "Traceback (most recent call last):\n" in frames
        assert "depot.py" in frames
        assert "engine/durable" not in frames


def moves_of(text: str) -> list[str]:
    """Return the lines of the history on a page, without markup and instants."""
    lines = text.partition('<ol class="moves">')[2].partition("</ol>")[0].split("</li>")[:-1]
    plain = (" ".join(re.sub("<[^>]+>", " ", line).split()) for line in lines)
    return [re.sub(r"[\d-]+ [\d:.]+ UTC ", "", line) for line in plain]


async def test_history_tells_why_and_repeats_no_reason(site: Site) -> None:
    client = site.house.client
    id = await client.start("depot.pack_up", {"parcels": 1})
    await site.house.until("select from suspended where execution_id = $1 and signals <> '[]'", id)
    await client.signal(id, "fetched", "gone")
    await client.result(id, timeout=30)
    async with visitor(site) as browser:
        function, workflow = [
            moves_of((await browser.get(f"/executions/{of}")).text) for of in (id, site.ids["good"])
        ]
    assert re.fullmatch(r"requested \(by client test-\d+\): created", function[0])
    assert re.fullmatch(r"scheduled \(by (client|executor) test-\d+ ?\): ready for a worker", function[1])
    assert any(
        re.fullmatch(r"waiting \(by \w+ test-\d+ ?\): waits, without a worker, for the signal .+", line)
        for line in function
    )
    assert any(
        re.fullmatch(r"requested again \(by (client|executor) test-\d+ ?\): a signal .+ has come", line)
        for line in function
    )
    assert sum("a signal that the execution waited for" in line for line in function) == 1
    assert re.fullmatch(
        r"running \(by client test-\d+\): started at once: a workflow needs no worker", workflow[1]
    )
    assert workflow[-1].startswith("completed (by ")
    assert workflow[-1].endswith(": the last task of the workflow has ended")


async def test_inquiry_of_another_user_names_its_assignee(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get("/inquiries")).text
    assert text.count(" may answer this question.</p>") == 1
    assert text.count(">Approve</button>") == 1


async def test_forms_that_change_a_definition_say_which(site: Site) -> None:
    addresses = {
        "/rules/new?change=depot.large": "Change rule depot.large",
        "/schedules/new?change=depot.hourly": "Change schedule depot.hourly",
        "/rules/new": "Write a rule",
        "/schedules/new": "Write a schedule",
    }
    async with visitor(site) as browser:
        for address, title in addresses.items():
            text = (await browser.get(address)).text
            assert f"<h1>{title}</h1>" in text
            assert f"<title>{title} · Penstock</title>" in text


async def test_event_and_its_publisher_link_each_other(site: Site) -> None:
    event, publisher = site.ids["event"], site.ids["good"]
    await site.house.rows(
        "insert into effect (parent, id, kind) values ($1, $2, 'event') returning 1", publisher, event
    )
    async with visitor(site) as browser:
        run = (await browser.get(f"/executions/{publisher}")).text
        shown = (await browser.get(f"/events/{event}")).text
        other = (await browser.get(f"/executions/{site.ids['bad']}")).text
    assert f'<li>event <a href="/events/{event}">depot.placed</a>' in run
    assert "Published events and started executions" not in other
    assert f'<dt>published by<dd><a href="/executions/{publisher}">{str(publisher)[-8:]}</a>' in shown


async def test_overview_counts_and_lists_failed_runs_without_tasks(site: Site) -> None:
    [[runs, every]] = await site.house.rows(
        "select count(*) filter (where parent is null), count(*) from execution"
        " where status in ('failed', 'timeout', 'abandoned')"
    )
    site.backend._activity = ActivityWatch()
    async with visitor(site) as browser:
        text = (await browser.get("/")).text
    assert every > runs > 0
    assert re.search(rf"<b>{runs}</b><span[^>]*>of \d+ ended top-level executions failed, timed out", text)
    failures = text.partition("Newest failures")[2]
    assert failures.count("<tr data-row>") == runs
    assert "›" not in failures


REPORTED = """
insert into process (id, kind, name, routes, actions, labels, concurrency, started_at, beat_at, state, holding)
values ($1, 'worker', 'late', '{elsewhere}', '{}', '{}', 9, clock_timestamp(), clock_timestamp(), 'active', array[$2::uuid])
"""


async def test_slots_in_use_are_the_running_executions(site: Site) -> None:
    """The heartbeat of a worker may still report an execution that has ended."""
    await site.house.rows(REPORTED, new_id(), new_id())
    site.backend._activity = ActivityWatch()
    try:
        async with visitor(site) as browser:
            text = (await browser.get("/")).text
    finally:
        await site.house.rows("delete from process where name = 'late'")
        site.backend._activity = ActivityWatch()
    running, in_use = (
        re.search(r"open top-level executions?[^<]*\bWorkers run (\d+) of these", text),
        re.search(r"(\d+) of \d+ slots in use</span>", text),
    )
    assert running is not None
    assert in_use is not None
    assert running[1] == in_use[1]


async def test_history_names_the_limit_that_an_execution_waits_for(site: Site) -> None:
    async with visitor(site) as browser:
        history = moves_of((await browser.get(f"/executions/{site.ids['queued']}")).text)
    assert re.fullmatch(
        r"queued \(by (client|executor) test-\d+ ?\): waits for the limit depot\.load\.all", history[-1]
    )


async def test_completed_workflow_says_that_its_failures_are_handled(site: Site) -> None:
    async with visitor(site) as browser:
        handled, failed = [
            (await browser.get(f"/executions/{site.ids[name]}")).text for name in ("bad", "failed")
        ]
    assert "4 completed, 1 failed (handled)</span>" in handled
    assert "(handled)" not in failed


async def test_waiting_step_shows_when_it_is_due_and_no_attempts(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get(f"/executions/{site.ids['sleeps']}")).text
    rows = text.partition('aria-label="Steps"')[2].partition("</tbody>")[0].split("<tr>")
    [sleep] = [row for row in rows if ">sleep<" in row]
    assert '<td class="figure" data-name="attempts">–<' in sleep
    assert re.search(
        r'<span class="wait">sleeping <time [^>]*>for [^<]+</time>, until <time [^>]*>[^<]+</time></span>',
        sleep,
    )


async def test_pages_list_the_causes_of_waits_alike(site: Site) -> None:
    async with visitor(site) as browser:
        overview, execution = [
            (await browser.get(path)).text for path in ("/", f"/executions/{site.ids['good']}")
        ]
    for cause in ("timer", "signal", "callback"):
        assert cause in SLEEP_CAUSES
        assert cause in WAIT_CAUSES
    assert f"waiting for {SLEEP_CAUSES}; no worker is occupied" in overview
    assert f"Waiting (for {WAIT_CAUSES}), paused or on hold" in execution


async def test_choices_explain_their_empty_option(site: Site) -> None:
    async with visitor(site) as browser:
        subscriptions, tokens, execution = [
            (await browser.get(path)).text
            for path in ("/subscriptions", "/tokens", f"/executions/{site.ids['broke']}")
        ]
    for text in (subscriptions, tokens, execution):
        assert '<option value="">–' not in text
    assert '<option value="">' not in subscriptions.partition(">Include tasks<")[2].partition("</select>")[0]
    assert '<option value="">' not in tokens.partition(">Expires after<")[2].partition("</select>")[0]
    [optional] = fields({"properties": {"fast": {"type": "boolean"}}})
    shown = str(TEMPLATES.get_template("parts.html").module.field(optional, "fast"))  # type: ignore[attr-defined]
    assert '<option value="">not set</option>' in shown


async def test_pages_explain_each_status_of_an_execution(site: Site) -> None:
    assert set(MEANINGS) == set(STATUSES)
    async with visitor(site) as browser:
        text = unescape((await browser.get("/executions")).text)
    missing = [
        status
        for status, meaning in MEANINGS.items()
        if f"<dt>{shown_status(status)}<dd>{meaning}</div>" not in text
    ]
    assert missing == []


async def test_pages_write_cancelling_and_send_the_value_of_the_api(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get("/executions")).text
        others = {
            path: (await browser.get(path.format(**site.ids))).text
            for path in ("/executions?view={stale}", "/subscriptions?change=shop")
        }
    assert re.search(r'value="canceling">\s*<span [^>]*><svg [^>]*>.*?</svg>cancelling</span>', text)
    assert "canceling" not in re.sub("<[^>]*>", "", text)
    for path, other in others.items():
        words = re.sub("<[^>]*>", "", other)
        assert ("cancelling" in words, "canceling" in words) == (True, False), path


async def test_refusal_links_the_list_instead_of_its_command(site: Site) -> None:
    async with visitor(site) as browser:
        text = (await browser.get("/executions/00000000-0000-7000-8000-000000000000")).text
    assert 'See <a href="/executions">the newest executions</a>.' in text
    assert "`" not in text.partition("<main")[2]


def test_hint_links_only_pages_of_the_menu() -> None:
    hint = "`penstock executions` & `penstock users list` & `penstock show <b>`"
    assert with_pages(hint, MENU[:2]) == (
        'The page <a href="/executions">Executions</a> &amp; <code>penstock users list</code> &amp; '
        "<code>penstock show &lt;b&gt;</code>"
    )


def test_hint_to_see_a_list_has_the_link_on_its_name() -> None:
    hint = "See the newest executions: `penstock executions`. See the users: `penstock users list`."
    assert with_pages(hint, MENU[:2]) == (
        'See <a href="/executions">the newest executions</a>. See the users: <code>penstock users list</code>.'
    )


def test_commands_with_a_page_exist() -> None:
    assert set(LIST_COMMANDS) <= {" ".join(("penstock", *path)) for path in commands()}
    assert set(LIST_COMMANDS.values()) <= {place.path for place in MENU}


SENTENCES = {
    "/": (
        "Half of the top-level executions took less time than this from creation to end.",
        "Duration of top-level executions per 15 s, including waits, last 15 min (axis from 0 to ",
        "p50 duration of top-level executions in the last",
        "failed, timed out or were abandoned (last 15 min)",
        "Open executions (with tasks and child executions)",
        "waiting for a slot of a limit",
        "workflows and durable functions with open tasks or child executions",
        "A workflow always has a dash, because it needs no worker.",
    ),
    "/executions": (
        "All, with tasks",
        "7 more saved views …",
        "Has an open question",
        "waits for a limit, for a circuit breaker, or for the start of a worker that can run it",
        "a worker runs it, or it is a workflow with open tasks",
    ),
    "/executions/{good}": (
        "Start pending (waits for a slot, a worker or a start time)",
        "If you change a parameter that sets a label, the label changes too.",
        "time waiting",
        "time with running tasks",
    ),
    "/executions/{broke}": (
        "Saved state of the execution",
        "The durable function saves these values with ctx.set, to show its progress.",
        "Result of pack",
        "This action is a durable function: ",
    ),
    "/executions/{queued}": ("Set the priority", "Cancel the execution", "has held its slot the longest: "),
    "/actions/depot.check": (
        "If another request with the same debounce key arrives during the wait, its parameters replace the earlier ones.",
        "Requests with the same key, such as doc-17, share one execution.",
        "executions with a higher priority start first",
        "The maximum wait is measured from the first request.",
        "After that time, the execution starts even if more requests arrive.",
    ),
    "/events/{event}": ("the condition `payload.order == 13` is false.",),
    "/limits": (
        "If a limit has a key, each value of the key has its own slots and its own queue.",
        "“Started per minute” is the average since this queue was last empty.",
        "A dash under “Longest wait” or “Started per minute” means that no execution waits.",
        "If a limit has no slot in use and no waiting execution, this table omits it.",
    ),
    "/limits/depot.gate": ("Set the slots",),
    "/workers": (
        "waits for a free slot of a worker that can run it.",
        "If an action names no route, the first routing rule that matches the action decides",
        "This page does not list API servers.",
        "Commands",
    ),
    "/schedules": ("One bar can stand for several starts within 15 minutes.",),
    "/schedules/new": ("cron: 0 2 * * *", "every: 15m", "at: 2030-01-31T09:00", "rrule: FREQ=DAILY;BYHOUR=2"),
    "/rules/depot.large": ("The executions that this rule started are not changed.",),
    "/events": ("1 rule matched, 1 rule failed",),
    "/rules?rule=depot.broken": (
        "Evaluate the rule again for these events",
        "This evaluates the current version of depot.broken for each event on which the rule failed.",
    ),
    "/audit": (
        "unchanged: the request was valid, and nothing had to change.",
        "To find rows that were later changed, deleted or added, run penstock audit verify.",
        "you can check later that no row written until now was changed: penstock audit verify --head VALUE",
        "Until (UTC)",
    ),
    "/dead-letters": ("share one row.",),
    "/dead-letters/{letter}": ("first failure", "last failure", "Replay the message"),
    "/tokens": (
        "Within a few seconds, all requests with the token billing are rejected.",
        "Rotate the token",
        "A unique name.",
        "Other scopes",
    ),
    "/users": (
        "A unique name.",
        "If Tenants is empty, this replaces the roles that apply to all tenants.",
        "publish: only publish events.<li>start: only start actions.<li>answer: only answer inquiries.",
    ),
    "/enforcements": (
        "An enforcement records that a rule matched an event, or that the rule failed on the event.",
        "Evaluated",
    ),
    "/secrets": ("Only executions of this tenant can use the secret.", "Encryption key id"),
    "/webhooks?change=parcels": (
        "Change webhook parcels",
        "secret (a shared secret in a header)",
        "standard (Standard Webhooks)",
        "Only for the signature scheme secret: the name of the header",
        "the signature schemes github, stripe and standard use their own ids. With the scheme called secret,",
        "If the condition is true, the call makes the waiting executions fail.",
        "Callback id",
        "The executions fail if",
        "Header with the call id",
        "Header with the secret",
    ),
    "/subscriptions?change=shop": (
        "Change subscription shop",
        "Only executions of these actions are reported, such as shop.*. Empty: executions of all actions.",
    ),
    "/holds": ("hold the future executions of this name",),
}
"""Sentences of pages that readers did not understand in an earlier form."""


def plain(html: str) -> str:
    """Return the texts, titles and labels of a page, with single spaces."""
    spoken = re.sub(r'<[^>]*?\b(?:title|aria-label)="([^"]*)"[^>]*>', r" \1 ", html)
    return " ".join(unescape(re.sub("</?(?:b|code|span)[^>]*>", "", spoken)).split())


async def test_pages_have_the_sentences_that_readers_understand(site: Site) -> None:
    async with visitor(site) as browser:
        texts = {path: (await browser.get(path.format(**site.ids))).text for path in SENTENCES}
    missing = [
        (path, sentence)
        for path, sentences in SENTENCES.items()
        for sentence in sentences
        if sentence not in plain(texts[path]) and sentence not in texts[path]
    ]
    assert not missing


async def test_no_page_says_required_as_a_part_of_a_label(site: Site) -> None:
    async with visitor(site) as client:
        texts = [(await client.get(path)).text for path in ("/webhooks", "/secrets", "/users", "/tokens")]
    labels = [label for text in texts for label in re.findall(r"<label for=[^>]*>(.*?)</label>", text)]
    assert "Name" in labels
    assert [label for label in labels if "required" in label] == []
    assert [label for label in labels if not label[:1].isupper()] == []


async def test_tables_of_slots_have_the_same_columns(site: Site) -> None:
    async with visitor(site) as client:
        for path in ("/workers", "/limits"):
            head = (await client.get(path)).text.partition("<thead>")[2].partition("</thead>")[0]
            columns = [plain(column) for column in re.split(r"<th\b[^>]*>", head)]
            assert columns.index("Slots") == columns.index("In use") + 1, head


async def test_texts_in_backticks_are_escaped() -> None:
    assert with_code("`<b>` & `x") == "<code>&lt;b&gt;</code> &amp; `x"
