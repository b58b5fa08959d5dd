"""The texts of `penstock explain` and of each error's page besides the docstring: the cause, the remedy, and an
example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    why: str
    do: str
    code: str = ""
    """Python code that raises the error without a server. The page shows its message, and a test checks the message."""
    message: str = ""
    """The message, for an error that only an installation can raise."""


TEXTS: Mapping[str, Text] = {
    "PenstockError": Text(
        why="It is the class of all others. As itself it means a fault of Penstock's own.",
        do="Catch it to catch everything that Penstock can explain. Where it says that it should not have happened, please report it, with "
        "the traceback that `PENSTOCK_LOG_LEVEL=debug` shows.",
        code='from penstock import PenstockError\n\nraise PenstockError("the printer is on fire", hint="Call somebody.")',
    ),
    "ConfigurationError": Text(
        why="A variable of the environment cannot be read, two of them contradict each other, or the database or the broker is not set up "
        "for what they ask.",
        do="Set what the message names right, or unset it: [configuration](../../configuration.md) has every setting with its default. "
        "`penstock doctor` looks at all of them.",
        code='from penstock.service.environment import load\n\nload(heartbeat_interval="often")',
    ),
    "ConnectionFailed": Text(
        why="The server is not running, its address is wrong, or something between refuses the connection.",
        do="See that `PENSTOCK_DATABASE_URL` and `PENSTOCK_BROKER_URL` name servers that answer; `penstock doctor` tries both. Services that "
        "may start before their servers take `--wait SECONDS`.",
        message="PostgreSQL at db.example.org:5432/penstock does not answer: ConnectionRefusedError: [Errno 111] Connect call failed",
    ),
    "ServerFull": Text(
        why="Every process keeps a few connections; together they are more than the server, the database or the role allows. Executors and "
        "workers bound theirs to what there is, and make room within ten seconds for those that have come.",
        do="Raise the limit, run fewer processes, or let each have fewer (`PENSTOCK_DATABASE_CONNECTIONS`). `penstock doctor` says how many "
        "there are, and whether one executor or worker more would fit.",
        message="PostgreSQL at db.example.org:5432/penstock does not answer: TooManyConnectionsError: sorry, too many clients already",
    ),
    "NotMigrated": Text(
        why="The database is new, or this release calls functions that it does not have yet: the upgrade began with the services.",
        do="Run `penstock migrate`. It may be run any time, by several at once; [upgrading](../../how-to/upgrade.md) begins with it.",
        message="the database has no schema yet\nhint:  Run `penstock migrate`.",
    ),
    "ServersNotReady": Text(
        why="PostgreSQL or RabbitMQ did not answer within the time that `--wait` gave, or the schema was not there.",
        do="Look at what the message says of the server that was not ready; give more time where it is only slow. The exit code is 3, so that "
        "whatever starts services can tell it from other errors.",
        message="not ready after 30 s: the database has no schema yet\nhint:  Run `penstock migrate`.",
    ),
    "PartEnded": Text(
        why="A loop, a consumer or a listener of the process ended although nobody asked it to.",
        do="Nothing is lost: others take over what the process held. Have it started again (systemd and Kubernetes do), read its log, and "
        "report what it says.",
        message="relay_outbox has ended: OSError: ...\n"
        "hint:  This process ends with it, and can be started again. The log tells more; please report it.",
    ),
    "DefinitionError": Text(
        why="Something that you wrote cannot be: an option that there is not, a name that is none, a reference to what is defined nowhere.",
        do="Mend the line that the message names; `penstock lint FILE` finds all such faults at once. While one is there nothing is stored, "
        "and what was applied before goes on.",
        code='from penstock import action\n\n@action(pack="shop", retries=3)\ndef charge(order: int) -> None: ...',
    ),
    "ExpressionError": Text(
        why="A condition or a template does not parse, names what is not there, or takes too long. Where it happens while something runs, "
        "what was to be decided fails, with this as its error.",
        do='Try it on a payload: `penstock test "payload.amount > 100" amount=7`. [Expressions](../expressions.md) has all there is. '
        "`penstock rules errors` lists rules that failed, `penstock rules rerun` takes them up again.",
        code="from penstock.language.expressions import condition\n\n"
        'condition("payload.amont > 100")({"payload": {"amount": 7}})',
    ),
    "InvalidInput": Text(
        why="What came does not fit the schema of its action, workflow or trigger; or it is too large, or no JSON.",
        do="Send what the schema asks for: `penstock actions` shows the parameters of each. Nothing was stored, so sending it again is safe.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None: ...\n\nSimulation().run(charge, order="seven")',
    ),
    "CheckTooCostly": Text(
        why="The schema has many alternatives, names in patterns or patterns that backtrack, and the value is large: the product of both is "
        "more than one check may cost ([bounds](../bounds.md)).",
        do="Send a smaller value, or simplify the schema: tell alternatives apart by one constant each, and repeat nothing in a pattern that has "
        "two ways, not `(a|aa)+` but `a+`. Sending it again changes nothing.",
        code="from penstock.language.schemas import Schema\n\n"
        'Schema({"pattern": "^(a|aa)+$"}).validate("a" * 60 + "!", what="payload")',
    ),
    "NotFound": Text(
        why="The name is spelled differently, nothing of it was applied, it belongs to another tenant, or retention has removed it.",
        do="Look at what there is: `penstock actions` (workflows are there, too), `penstock executions`. What is written but not there yet is "
        "registered with `penstock apply FILE`.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None: ...\n\n'
        'Simulation(charge).run("shop.chrage", order=7)',
    ),
    "Conflict": Text(
        why="The same key came with other parameters; or what was asked needs another status, as `rerun` needs an execution that has ended.",
        do="Look at what is there (`penstock show ID`) and decide which of the two is right. Trying again as it is never helps.",
        message="ID has not ended: it is running\n"
        "hint:  End it first (`penstock cancel ID`), or correct it while it runs (`penstock skip`, `set-result`).",
    ),
    "KeysChanged": Text(
        why="`penstock encryption` was used while this process worked. The database refused a value in clear.",
        do="Nothing: the process reads the keys and tries again. Where it goes on for a minute, the process has another master key than "
        "the tenant's: `penstock encryption list` names it.",
        message="the values of tenant acme are encrypted: params of payload would be in clear",
    ),
    "WrongClock": Text(
        why="The machine's clock is wrong. Ids begin with the time, and those of this machine would stand among those of another hour.",
        do="Set the clock right (NTP). Clients try again with ids by the database's clock, so nothing is lost meanwhile.",
        message="this machine's clock is more than an hour off the database's\nhint:  Correct the clock (NTP), and try again.",
    ),
    "IllegalMove": Text(
        why="Somebody changed a status by hand, or code asks for a move that there is not. The database itself refuses it.",
        do="Change statuses with commands (`cancel`, `rerun`, `skip`), never with SQL. [The life of an execution](../../lifecycle.md) has "
        "every move. Where no hand was in it, please report it.",
        message="illegal move ID: completed -> running",
    ),
    "ResultNotStorable": Text(
        why="An action returned an object that JSON cannot hold, NaN, a NUL character, or more bytes than are allowed.",
        do="Return plain values; [what is large](../../how-to/large-results.md) goes to an object store once `PENSTOCK_RESULT_STORE` names one. "
        "The attempt has failed with this error, and is tried again only where that store was what failed.",
        code="from penstock.run.result_encoding import encode\n\nencode(float('nan'), 1_000_000)",
    ),
    "BatchMismatch": Text(
        why="A function with a [batch](../../how-to/batches.md) returned a list that is longer or shorter than the list of its items, or no list.",
        do="Return one result for each item, in their order. An exception in the place of a result fails its item alone. The retry policy of the "
        "action decides whether the items are tried again.",
        message="the function was called with a batch of 3 and returned 2 results",
    ),
    "Undecodable": Text(
        why="Something else publishes to a queue of Penstock's, or in a format that this release does not know.",
        do="Publish events to the events exchange, as [the wire format](../../wire-format.md) says. The message is kept: "
        "`penstock dead-letters list` shows it with its sender.",
        message="the body is not JSON: unexpected character: line 1 column 1 (char 0)",
    ),
    "ExecutionFailed": Text(
        why="You waited for a result, and the execution ended as `failed`, `timeout`, `cancelled` or `abandoned`.",
        do="`penstock why ID` says why. In Python `error.status` and `error.execution_id` tell which and how; `penstock rerun ID` runs it "
        "once more, once the cause is gone.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None:\n    raise ConnectionError("the bank is down")\n\n'
        "Simulation().run(charge, order=7).result",
    ),
    "NoExecutor": Text(
        why="The action names a task executor that this worker was not given, such as `kubernetes`.",
        do="Start a worker that has it, and route the action there: [task executors](../../task-executors.md). Until then the work waits; "
        "`penstock why ID` names it.",
        message="ml.train asks for the task executor 'kubernetes', which this worker does not have\n"
        "hint:  Configure it on this worker, or route the action to a worker that has it.",
    ),
    "NoCapacity": Text(
        why="Code that starts attempts on a task executor did not ask whether it has room.",
        do="Call `has_capacity()` first. Workers do; nobody but the author of a worker sees this.",
        message="the thread executor already runs 10 attempts\n"
        "hint:  Ask has_capacity() first, or raise the capacity of this executor.",
    ),
    "ClientUnusable": Text(
        why="A client was called after its `close` or its `with` block. Or a web server or a pool of processes forked after the "
        "client was created: the new process has a copy of it, without the thread that does its work.",
        do="Create a client in each process, after the fork, such as at the first request. Close it after the last call.",
        message="this client is closed",
    ),
    "OutsideRun": Text(
        why="`current()`, `ask()` or a sleep was called where no attempt runs: at import, in a test, in a thread that was started without "
        "its context.",
        do="Call it inside an action. In tests let `simulation.run` run the action, or `crash_everywhere` a durable function: "
        "[testing](../../testing.md).",
        code="from penstock import current\n\ncurrent()",
    ),
    "AddressRefused": Text(
        why="An address that people gave leads into the network that the workers or executors stand in, or a redirect leads to something "
        "less safe.",
        do="Where it is meant, put the address or its network on the list that the hint names. HTTP actions have "
        '`PENSTOCK_EXECUTORS=\'{"http": {"allow": ["10.1.2.3"]}}\'` at the workers, and subscriptions '
        "`PENSTOCK_PRIVATE_SUBSCRIBERS` at the executors: [configuration](../../configuration.md).",
        message="hooks.internal is 10.1.2.3, which is not a public address\n"
        "hint:  If it is to be reached, put it or its network on PENSTOCK_PRIVATE_SUBSCRIBERS.",
    ),
    "PartitionDropped": Text(
        why="Retention dropped a day while another replica looked at it.",
        do="Nothing: the replica goes on with the next one.",
        message="history_20260101 is not there any more",
    ),
    "NotAuthenticated": Text(
        why="The request has no token and no session, or one that is unknown, revoked or over.",
        do="Make a token with `penstock tokens create`, and send it as `Authorization: Bearer pst_...`; or sign in.",
        message="no token came with this request\n"
        "hint:  Make one with `penstock tokens create`, and send it: `Authorization: Bearer pst_...`. Or sign in.",
    ),
    "TooManyAttempts": Text(
        why="Too many sign-ins failed in a quarter of an hour, of one user or from one address.",
        do="Wait as long as the hint says. `penstock users password NAME` sets another password.",
        message="too many sign-ins have failed recently\nhint:  Try again in 15 minutes.",
    ),
    "NotAllowed": Text(
        why="The token or the user has other scopes, or belongs to another tenant.",
        do="Have somebody with the scope `admin` make a token that may: `penstock tokens create`. [The API](../../api.md) says which scope "
        "each route needs.",
        message="ci may not do this: it lacks the scope 'define'\n"
        "hint:  Make a token with it (penstock tokens create NAME --scope define), or give the user a role that has it.",
    ),
    "ClaimLost": Text(
        why="The worker was taken for dead, or the execution was cancelled or timed out, while its code still ran.",
        do="Nothing, but make sure that actions may run twice: [guarantees](../../guarantees.md). Where it comes often, workers stand still "
        "for too long: look at what blocks their event loop.",
        message="attempt 1 of ID is not this worker's any more",
    ),
    "UnknownSession": Text(
        why="The worker said goodbye, or the gateway had no heartbeat of it for too long. Or another token began the session.",
        do="The worker ends its attempts without a report, and says hello again; libraries do so by themselves. Where it comes often, the "
        "network is away for long, or the worker stands still. [Workers in any language](../../workers-in-any-language.md) has the rest.",
        message="no worker has a session with this secret: it is unknown, or has ended",
    ),
    "StepFailed": Text(
        why="What a durable function asked for failed as often as it may be tried, or ended without a result.",
        do="Catch it inside the function where it can go on without; `error.status` and `error.type` tell what happened. "
        "[Durable functions](../../durable.md) has the rest.",
        message="step charge failed: ConnectionError: the bank is down",
    ),
    "StepTimedOut": Text(
        why="A signal, an event or an answer did not come before the time was over that the function gave it.",
        do="Catch it and decide what follows, or give more time.",
        message="sleep timeout of paid ended as timeout",
    ),
    "ReplayMismatch": Text(
        why="The code of a durable function was changed while a run of it was open; or it asks the clock, chance or the network outside of a "
        "step.",
        do="Bring the code back, or let the change apply to new runs only (`ctx.version`). `penstock lint` finds what is not "
        "deterministic, `penstock replay ID --against FILE.py` tries the new code on the old run.",
        message="two branches wait for the signal 'paid', and which of them it is for would be left to chance\n"
        "hint:  Give each branch a signal of its own name.",
    ),
    "NothingAwaited": Text(
        why="An attempt of a durable function was to be suspended, and it awaited no child, no instant and no signal.",
        do="Report it with the code of the function. Cancel the tasks that the function leaves, as a way around it.",
        message="an attempt is to be suspended, and nothing would end its wait",
    ),
    "MissingExtra": Text(
        why="Penstock was installed lean, as servers want it, and this part needs libraries that are not there.",
        do="Type the line that the message has. With the extra `all` it installs everything.",
        message="this needs what is not installed: pip install '/path/to/penstock[embedded]'",
    ),
}
