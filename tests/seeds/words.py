"""Every option, event, status, result, error and default that the documents name, and what is ours.

A row says where ours is: `setting NAME`, `option Model.field`, `field Model.field`, `metric NAME`, `announcement NAME`,
`queue NAME`, `status NAME`, `outcome KIND`, `error NAME`,
`policy NAME` of missed fires, or `none`, with the reason. The second column is the default that ours has, where there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NO_DEFAULT = object()


class Ours(NamedTuple):
    where: str
    default: Any = NO_DEFAULT
    why: str = ""
    """The reason for a difference."""


STRUCTS: dict[str, Ours] = {
    "StaleClaimSweeperConfig.sweep_interval": Ours("setting sweep_interval", 30.0),
    "StaleClaimSweeperConfig.stale_threshold": Ours("setting stale_threshold", 60.0),
    "ExecutorConfig.max_concurrent_tasks": Ours(
        "setting concurrency", 32, "theirs is 4: most actions wait, and a slot costs next to nothing"
    ),
    "ExecutorConfig.poll_interval": Ours(
        "setting poll_interval", 5.0, "theirs is 1 s: ours is woken, and looks as a fallback"
    ),
    "ExecutorConfig.task_timeout": Ours("option Timeouts.attempt", 300.0),
    "RetryPolicy.max_attempts": Ours(
        "option RetryPolicy.max_attempts", 1, "theirs is 3: a retry is asked for"
    ),
    "RetryPolicy.initial_delay": Ours("option RetryPolicy.initial_delay", 1),
    "RetryPolicy.max_delay": Ours("option RetryPolicy.max_delay", 60),
    "RetryPolicy.backoff_factor": Ours("option RetryPolicy.factor", 2.0),
    "RetryPolicy.retry_on_errors": Ours("option RetryPolicy.retry_on", ()),
    "TaskReadyEvent.pipeline_execution_id": Ours("field TaskReadyEvent.root"),
    "TaskReadyEvent.task_execution_id": Ours("field TaskReadyEvent.execution_id"),
    "TaskReadyEvent.task_namespace": Ours("field TaskReadyEvent.namespace"),
    "TaskReadyEvent.attempt": Ours("field TaskReadyEvent.attempt"),
    "TaskReadyEvent.max_attempts": Ours("field TaskReadyEvent.max_attempts"),
    "CronMetrics.total_schedules": Ours("metric Figures.total"),
    "CronMetrics.active_schedules": Ours("metric Figures.active"),
    "CronMetrics.executions_per_minute": Ours("metric Figures.per_minute"),
    "CronMetrics.average_execution_time": Ours("metric Figures.took"),
    "CronMetrics.failed_executions_rate": Ours("metric Figures.failure_rate"),
    "CronMetrics.recovery_events": Ours("metric FireStats.recoveries"),
}
BUILDERS: dict[str, Ours] = {
    "enable_claiming": Ours(
        "none", why="every attempt is claimed: a worker alone has a second one during an upgrade"
    ),
    "heartbeat_interval": Ours("setting heartbeat_interval", 10.0),
    "runner_id": Ours("setting runner_id", None),
    "runner_name": Ours("setting runner_name", None),
    "with_rule": Ours("option Route.pattern"),
    "database_url": Ours("setting database_url", None),
    "routing_config": Ours("option Route.route"),
}
TABLE: dict[str, Ours] = {
    "enable_claiming=true": BUILDERS["enable_claiming"],
    "heartbeat_interval=10s": BUILDERS["heartbeat_interval"],
    "stale_claim_sweep_interval=30s": STRUCTS["StaleClaimSweeperConfig.sweep_interval"],
    "stale_claim_threshold=60s": STRUCTS["StaleClaimSweeperConfig.stale_threshold"],
    "runner_id=None": BUILDERS["runner_id"],
    "runner_name=None": BUILDERS["runner_name"],
    "max_concurrent_tasks=4": STRUCTS["ExecutorConfig.max_concurrent_tasks"],
}
SCHEDULE: dict[str, Ours] = {
    "id": Ours("option Schedule.ref"),
    "workflow_name": Ours("option Schedule.action"),
    "cron_expression": Ours("option Schedule.cron", None),
    "timezone": Ours("option Schedule.timezone", "UTC"),
    "enabled": Ours("option Schedule.enabled", True),
    "context": Ours("option Schedule.context", {}),
}
TASK: dict[str, Ours] = {"id": Ours("word of @task")}
EVENTS: dict[str, Ours] = {
    "event.created": Ours("queue event.created"),
    "enforcement.created": Ours(
        "announcement enforcement.created",
        why="no queue of ours: an enforcement and its execution are made at once",
    ),
    "execution.requested": Ours("queue execution.requested"),
    "execution.completed": Ours("queue execution.completed"),
    "InquiryCreated": Ours("announcement inquiry.created"),
    "ExecutionRequested": Ours("queue execution.requested"),
    "TaskReadyEvent": Ours("field TaskReadyEvent.execution_id"),
    "ExecutionResult": Ours("field Outcome.kind"),
}
STATUSES: dict[str, Ours] = {
    "Attune.requested": Ours("status requested"),
    "Attune.scheduled": Ours("status scheduled"),
    "Attune.running": Ours("status running"),
    "Cloacina.NotStarted": Ours("none", why="a task that has not started has no row: its workflow tells"),
    "Cloacina.Ready": Ours("status scheduled"),
    "Cloacina.Running": Ours("status running"),
    "Cloacina.Completed": Ours("status completed"),
    "Cloacina.Failed": Ours("status failed"),
    "Cloacina.Skipped": Ours("status skipped"),
}
_ROWS_OF_CLAIM = "a claim returns the rows that it won, and no row is won twice"
_LIST_OF_TROUBLES = "`troubles` is a list with reasons: an empty one is healthy"
VARIANTS: dict[str, Ours] = {
    "CronError::InvalidExpression": Ours("error DefinitionError"),
    "CronError::InvalidTimezone": Ours("error DefinitionError"),
    "CronError::NoFutureExecution": Ours("error DefinitionError"),
    "CronExecutionStatus::Completed": Ours("status completed"),
    "CronExecutionStatus::Failed": Ours("status failed"),
    "CronExecutionStatus::Running": Ours("status running"),
    "DispatchError::ExecutionFailed": Ours("outcome failed"),
    "DispatchError::NoCapacity": Ours("error NoCapacity"),
    "DispatchError::NoExecutor": Ours("error NoExecutor"),
    "ExecutionStatus::Completed": Ours("outcome completed"),
    "ExecutionStatus::Failed": Ours("outcome failed"),
    "ExecutionStatus::Retry": Ours("field TaskError.retryable"),
    "ExecutorError::TaskExecution": Ours("outcome failed"),
    "ExecutorError::TaskTimeout": Ours("outcome timed_out"),
    "HealthStatus::Healthy": Ours("none", why=_LIST_OF_TROUBLES),
    "HealthStatus::Unhealthy": Ours("none", why=_LIST_OF_TROUBLES),
    "HeartbeatResult::ClaimLost": Ours("error ClaimLost"),
    "HeartbeatResult::Ok": Ours("none", why="a heartbeat that is kept returns nothing"),
    "MissedExecutionPolicy::Execute": Ours("policy execute"),
    "MissedExecutionPolicy::ExecuteWithDelay": Ours("policy delay"),
    "MissedExecutionPolicy::Skip": Ours("policy skip"),
    "RunnerClaimResult::AlreadyClaimed": Ours("none", why=_ROWS_OF_CLAIM),
    "RunnerClaimResult::Claimed": Ours("none", why=_ROWS_OF_CLAIM),
    "WorkflowStatus::Completed": Ours("status completed"),
    "WorkflowStatus::Failed": Ours("status failed"),
}
DEFAULTS: dict[str, str] = {
    "000:122": "setting heartbeat_interval 10",
    "000:159": "setting sweep_interval 30",
    "000:161": "setting stale_threshold 60",
    "000:192": "the two settings",
    "000:200": "setting sweep_interval 30",
    "000:201": "setting stale_threshold 60",
    "000:203": "relation stale_threshold heartbeat_interval",
    "000:246": "route default",
    "000:259": "route default",
    "000:260": "route default",
    "000:314": "setting stale_threshold 60",
    "000:364": "the table above",
    "000:375": "relation stale_threshold heartbeat_interval",
    "000:376": "relation sweep_interval stale_threshold",
    "002:34": "setting concurrency 32",
    "002:35": "setting poll_interval 5",
    "002:36": "option Timeouts.attempt 300",
    "003:168": "health ORPHANED 1800",
    "003:225": "option MissedFires.grace 300",
    "003:332": "no leader: each fire is unique",
    "003:346": "no leader: each fire is unique",
    "003:381": "an executor looks for what is due, and sleeps until then",
    "003:437": "health MOST_MISSED 10",
    "003:442": "health MOST_STALLED 5",
    "004:174": "route default",
}
"""By document and line."""
