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
        why="`PenstockError` is the base class of all errors of Penstock. An error with exactly this class is "
        "a defect of Penstock.",
        do="Catch `PenstockError` to catch every error that Penstock can explain. If the message says that "
        "this should not have happened, please report it. Add the traceback that "
        "`PENSTOCK_LOG_LEVEL=debug` prints.",
        code='from penstock import PenstockError\n\nraise PenstockError("the printer is on fire", hint="Call somebody.")',
    ),
    "ConfigurationError": Text(
        why="An environment variable has a wrong value, two variables contradict each other, or the database "
        "or the broker is not set up for these settings.",
        do="Correct the setting that the message names, or unset it. [Configuration](../../configuration.md) "
        "has every setting with its default. `penstock doctor` checks the settings.",
        code='from penstock.service.environment import load\n\nload(heartbeat_interval="often")',
    ),
    "ConnectionFailed": Text(
        why="The server is not running, its address is wrong, or a firewall or proxy refuses the connection.",
        do="Check that `PENSTOCK_DATABASE_URL` and `PENSTOCK_BROKER_URL` name servers that answer: `penstock "
        "doctor` tries both. For a service that may start before its servers, use the option `--wait "
        "SECONDS`.",
        message="PostgreSQL at db.example.org:5432/penstock does not answer: ConnectionRefusedError: [Errno 111] Connect call failed",
    ),
    "ServerFull": Text(
        why="Every process keeps a few connections. Together they are more than the server, the database or "
        "the role allows. Executors and workers adapt their number of connections to this limit: they "
        "close some within ten seconds when another process starts.",
        do="Raise the limit, run fewer processes, or let each process have fewer connections "
        "(`PENSTOCK_DATABASE_CONNECTIONS`). `penstock doctor` shows the number of connections, and "
        "whether there is room for another executor or worker.",
        message="PostgreSQL at db.example.org:5432/penstock does not answer: TooManyConnectionsError: sorry, too many clients already",
    ),
    "NotMigrated": Text(
        why="The database is new, or the services were upgraded before the database: it lacks functions that "
        "this release calls.",
        do="Run `penstock migrate`. This is safe at any time, also from several processes at once. It is the "
        "first step of [an upgrade](../../how-to/upgrade.md).",
        message="the database has no schema yet\nhint:  Run `penstock migrate`.",
    ),
    "ServersNotReady": Text(
        why="Within the time of `--wait`, PostgreSQL or RabbitMQ did not answer, or the schema was missing.",
        do="The message names the server that was not ready, and the reason. If the server only starts "
        "slowly, raise the time of `--wait`. The exit code is 3, so that a supervisor can distinguish "
        "this error from others.",
        message="not ready after 30 s: the database has no schema yet\nhint:  Run `penstock migrate`.",
    ),
    "PartEnded": Text(
        why="A loop, a consumer or a listener of the process ended, although the process was not asked to stop.",
        do="No work is lost: other processes take over the work of this process. Let a supervisor such as "
        "systemd or Kubernetes start the process again. Please report the error, with the log of the "
        "process.",
        message="relay_outbox has ended: OSError: ...\n"
        "hint:  The process ends, too. Start it again. Please report the error, with the log of the process.",
    ),
    "DefinitionError": Text(
        why="A definition is not valid: it has an unknown option, a name with characters that are not "
        "allowed, or a reference to a definition that does not exist.",
        do="Correct the line that the message names. `penstock lint FILE` lists all such faults at once. If "
        "a definition is not valid, none is stored, and the definitions that were applied before stay in "
        "force.",
        code='from penstock import action\n\n@action(pack="shop", retries=3)\ndef charge(order: int) -> None: ...',
    ),
    "ExpressionError": Text(
        why="A condition or a template does not parse, uses an unknown name, or takes too many steps. In a "
        "running workflow, the task whose expression failed fails with this error. In a rule, the rule "
        "fails for this event.",
        do='Try the expression on a payload: `penstock test "payload.amount > 100" amount=7`. '
        "[Expressions](../expressions.md) lists all filters, functions and tests. `penstock rules errors` "
        "lists the rules that failed. `penstock rules rerun` evaluates these rules again for the same "
        "events.",
        code="from penstock.language.expressions import condition\n\n"
        'condition("payload.amont > 100")({"payload": {"amount": 7}})',
    ),
    "InvalidInput": Text(
        why="The value does not fit the schema of the action, the workflow or the trigger, is too large, or is not JSON.",
        do="Send a value that fits the schema: `penstock actions` shows the parameters of each action. "
        "Nothing was stored, so you can repeat the request safely.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None: ...\n\nSimulation().run(charge, order="seven")',
    ),
    "CheckTooCostly": Text(
        why="The value is large, and the schema is costly to check: it has many alternatives, patterns for "
        "names, or patterns that backtrack. One check may take only a fixed number of steps "
        "([bounds](../bounds.md)).",
        do="Send a smaller value, or simplify the schema. Give each alternative a property with a constant "
        "of its own. In a pattern, repeat only a part that matches in one way: `a+` instead of `(a|aa)+`. "
        "The same value is always refused, so do not send it again.",
        code="from penstock.language.schemas import Schema\n\n"
        'Schema({"pattern": "^(a|aa)+$"}).validate("a" * 60 + "!", what="payload")',
    ),
    "NotFound": Text(
        why="The name is misspelled, its definition was not applied, the object belongs to another tenant, or "
        "it was deleted after its retention.",
        do="List the names that exist: `penstock actions` (with workflows), `penstock executions`. If the "
        "definition is only in a file, register it with `penstock apply FILE`.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None: ...\n\n'
        'Simulation(charge).run("shop.chrage", order=7)',
    ),
    "Conflict": Text(
        why="The idempotency key was used before with other parameters, or the command needs an execution "
        "with another status. For example, `rerun` needs an execution that has ended.",
        do="Compare your request with the stored object (`penstock show ID`), and correct the request if it "
        "is wrong. The same request always fails in the same way.",
        message="ID has not ended: it is running\n"
        "hint:  End it first (`penstock cancel ID`), or correct it while it runs (`penstock skip`, `set-result`).",
    ),
    "KeysChanged": Text(
        why="`penstock encryption` was run while this process was running. The database then refused a value "
        "that the process had not encrypted.",
        do="You need to do nothing: the process reads the new keys and tries again. If the error persists "
        "for a minute, the process lacks the master key of the tenant. `penstock encryption list` shows "
        "the id of that key.",
        message="the values of tenant acme are encrypted: params of payload would be in clear",
    ),
    "WrongClock": Text(
        why="The clock of this machine is wrong. Ids begin with the time, so an id from this machine would be "
        "sorted into a wrong hour.",
        do="Correct the clock of the machine (NTP). Until then, clients try again with ids by the clock of "
        "the database, so no work is lost.",
        message="this machine's clock is more than an hour off the database's\nhint:  Correct the clock (NTP), and try again.",
    ),
    "IllegalMove": Text(
        why="A status was changed with SQL, or code requested a status change that is not allowed. The "
        "database refused the change.",
        do="Change statuses with commands (`cancel`, `rerun`, `skip`), never with SQL. [The life of an "
        "execution](../../lifecycle.md) lists the allowed status changes. If no SQL was involved, please "
        "report the error.",
        message="illegal move ID: completed -> running",
    ),
    "ResultNotStorable": Text(
        why="An action returned an object that JSON cannot represent, the number NaN or Infinity, a text with "
        "a NUL character, or more bytes than are allowed.",
        do="Return plain values: texts, numbers, true, false, null, lists and objects. Store [large "
        "results](../../how-to/large-results.md) in an object store that `PENSTOCK_RESULT_STORE` names. "
        "The attempt fails with this error. It is retried only if the object store failed.",
        code="from penstock.run.result_encoding import encode\n\nencode(float('nan'), 1_000_000)",
    ),
    "BatchMismatch": Text(
        why="A function with a [batch](../../how-to/batches.md) did not return a list, or its list has more "
        "or fewer results than there are items.",
        do="Return one result for each item, in the order of the items. If the list has an exception instead "
        "of a result, only that item fails. The retry policy of the action decides whether the items are "
        "tried again.",
        message="the function was called with a batch of 3 and returned 2 results",
    ),
    "Undecodable": Text(
        why="A message in a queue of Penstock does not have the format that this release reads. Another "
        "program may have published it.",
        do="Publish events only to the events exchange, in [the wire format](../../wire-format.md). The "
        "message is kept as a dead letter: `penstock dead-letters list` shows it.",
        message="the body is not JSON: unexpected character: line 1 column 1 (char 0)",
    ),
    "ExecutionFailed": Text(
        why="A call waited for the result of an execution, and the execution ended as `failed`, `timeout`, "
        "`cancelled` or `abandoned`.",
        do="`penstock why ID` shows the cause. In Python, `error.execution_id` is the id of the execution, "
        "and `error.status` is its status. Once the cause is removed, run the action again with `penstock "
        "rerun ID`.",
        code="from penstock.testing import Simulation\nfrom penstock import action\n\n"
        '@action(pack="shop")\ndef charge(order: int) -> None:\n    raise ConnectionError("the bank is down")\n\n'
        "Simulation().run(charge, order=7).result",
    ),
    "NoExecutor": Text(
        why="The action needs a task executor, such as `kubernetes`, that this worker does not have.",
        do="Start a worker with this task executor, and route the action to that worker: [task "
        "executors](../../task-executors.md). Until then the executions of the action wait.",
        message="ml.train asks for the task executor 'kubernetes', which this worker does not have\n"
        "hint:  Configure it on this worker, or route the action to a worker that has it.",
    ),
    "NoCapacity": Text(
        why="Code started an attempt on a task executor that already runs as many attempts as it may.",
        do="Call `has_capacity()` before you start an attempt. Penstock's workers do, so only the author of "
        "a worker can see this error.",
        message="the thread executor already runs 10 attempts\n"
        "hint:  Ask has_capacity() first, or raise the capacity of this executor.",
    ),
    "ClientUnusable": Text(
        why="A client was called after its `close` or after its `with` block. Another cause: the process was forked after "
        "the client was created, as web servers and process pools do. The child process has a copy of the "
        "client, but not the thread that does the work of the client.",
        do="Create a client in each process after the fork, for example at the first request. Close each "
        "client after its last call.",
        message="this client is closed",
    ),
    "OutsideRun": Text(
        why="`current()`, `ask()` or a sleep was called outside of a running action: at import, in a test, or "
        "in a thread without the context of the action.",
        do="Call these functions only inside an action. In a test, run the action with `simulation.run`, or "
        "a durable function with `crash_everywhere`: [testing](../../testing.md).",
        code="from penstock import current\n\ncurrent()",
    ),
    "AddressRefused": Text(
        why="The address of an HTTP action or a subscription is in a private network, or its host name is not "
        "valid. Private addresses are refused by default, so that callers cannot reach the internal network "
        "of the workers and executors. An HTTP action also refuses redirects from https to http or to "
        "another scheme. It sends no body to another host, and reads the pages of a list from one host only.",
        do="For a redirect or a page, correct the URL of the action. If a private address is intended, add "
        "it or its network to the list that the hint names. For HTTP "
        'actions, set `PENSTOCK_EXECUTORS=\'{"http": {"allow": ["10.1.2.3"]}}\'` for the workers. For '
        "subscriptions, set `PENSTOCK_PRIVATE_SUBSCRIBERS` for the executors: "
        "[configuration](../../configuration.md).",
        message="hooks.internal is 10.1.2.3, which is not a public address\n"
        "hint:  If this address is intended, add it or its network to PENSTOCK_PRIVATE_SUBSCRIBERS.",
    ),
    "PartitionDropped": Text(
        why="The retention deleted the rows of a day while another replica was reading these rows.",
        do="You need to do nothing: the replica continues with the next day.",
        message="history_20260101 is not there any more",
    ),
    "NotAuthenticated": Text(
        why="The request has neither a token nor a session, or its token or session is unknown, was revoked "
        "or has expired.",
        do="Create a token with `penstock tokens create`, and send it as `Authorization: Bearer pst_...`. In "
        "a browser, sign in.",
        message="this request has no token\nhint:  Create a token with `penstock tokens create`, and send it: "
        "`Authorization: Bearer pst_...`. Or sign in.",
    ),
    "TooManyAttempts": Text(
        why="Within 15 minutes, too many sign-ins of one user or from one address have failed.",
        do="Wait for the time that the hint says. If the password is lost, an administrator can set another "
        "one: `penstock users password NAME`.",
        message="too many sign-ins have failed recently\nhint:  Try again in 15 minutes.",
    ),
    "NotAllowed": Text(
        why="The token or the user lacks the scope that the request needs, or may not use its tenant.",
        do="Let a user with the scope `admin` create a token with the missing scope: `penstock tokens "
        "create`. [The API](../../api.md) lists the scope of each route.",
        message="ci may not do this: it lacks the scope 'define'\nhint:  Create a token with this scope (penstock "
        "tokens create NAME --scope define), or give the user a role with this scope.",
    ),
    "ClaimLost": Text(
        why="While the code of the attempt was running, its worker was declared dead, or the execution was "
        "cancelled or timed out.",
        do="You need to do nothing, if the action may run twice: [guarantees](../../guarantees.md). If the "
        "error is frequent, find the code that blocks the event loop of the workers, so that their "
        "heartbeats are late.",
        message="attempt 1 of ID is not this worker's any more",
    ),
    "UnknownSession": Text(
        why="The worker has left, or the gateway received no heartbeat from the worker for too long. Another "
        "cause: the session was started with another token.",
        do="The worker must end its attempts without a report, and send another hello. The libraries do this "
        "by themselves. If the error is frequent, check the network, and check whether the worker is "
        "blocked for a long time. See [workers in any language](../../workers-in-any-language.md).",
        message="no worker has a session with this secret: it is unknown, or has ended",
    ),
    "StepFailed": Text(
        why="A step of a durable function failed in each of its allowed attempts, or a child execution ended "
        "without a result.",
        do="If the function can continue without the result, catch the error in the function. `error.status` "
        "is the status of the step, and `error.type` is the type of its error. See [durable "
        "functions](../../durable.md).",
        message="step charge failed: ConnectionError: the bank is down",
    ),
    "StepTimedOut": Text(
        why="A signal, an event or an answer did not come before the deadline that the function set.",
        do="Catch the error in the function and handle the missing result, or set a later deadline.",
        message="sleep timeout of paid ended as timeout",
    ),
    "ReplayMismatch": Text(
        why="The code of a durable function was changed while one of its runs was open. Another cause: the code reads the "
        "clock, a random number or the network outside of a step, so that it behaves differently in each "
        "attempt.",
        do="Restore the code, or let the change apply to new runs only (`ctx.version`). `penstock lint` "
        "finds code that is not deterministic. `penstock replay ID --against FILE.py` tries the new code "
        "on the recorded steps of a run.",
        message="at position 2 the function requests step ship, but its run has recorded step charge at position 2\n"
        "hint:  The code was changed while the run was open, or is not deterministic. Restore the code, or "
        "guard the change with ctx.version(...). `penstock replay` compares the code with the run, and runs "
        "nothing.",
    ),
    "NothingAwaited": Text(
        why="An attempt of a durable function waited, but not for a child, a signal, an event, an answer or a "
        "timer. Nothing could have ended the wait.",
        do="This is a defect of Penstock. Please report it with the code of the function. As a workaround, "
        "let the function cancel the asyncio tasks that it no longer needs.",
        message="an attempt is to be suspended, and nothing would end its wait",
    ),
    "MissingExtra": Text(
        why="Penstock was installed without optional libraries, and this part needs some of them.",
        do="Run the pip command of the message. The extra `all` installs all optional libraries.",
        message="this needs what is not installed: pip install '/path/to/penstock[embedded]'",
    ),
}
