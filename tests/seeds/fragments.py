"""Every piece of code in the documents, by its document and line, and what is ours.

`user`: a user would write it, and a test here runs what stands in its place. `inside`: it is how they do it, and `ours` names
the files where we do. `drawing`: a diagram.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["user", "inside", "drawing"]


class Row(NamedTuple):
    kind: Kind
    ours: str
    """Of `user` the name of a test in `test_fragments.py`; of `inside` files of the project, separated by spaces."""


def _drawings(*places: tuple[str, int]) -> dict[tuple[str, int], Row]:
    return {place: Row("drawing", "docs/architecture.md") for place in places}


CLAIM = "migrations/functions/executions/claim_executions.sql"
BEAT = "migrations/functions/processes/beat.sql"
REAP = (
    "migrations/functions/processes/reap_process.sql migrations/functions/executions/recover_executions.sql"
)
FIRE = "migrations/functions/schedules/fire_schedules.sql"
SETTLE = "migrations/functions/schedules/settle_fires.sql"
FRAGMENTS: dict[tuple[str, int], Row] = {
    ("000", 38): Row("inside", CLAIM),
    ("000", 77): Row("user", "test_claiming_cannot_be_switched_off"),
    ("000", 91): Row("inside", BEAT),
    ("000", 121): Row("user", "test_heartbeat_interval_is_a_setting"),
    ("000", 127): Row("inside", "migrations/functions/executions/finish_attempts.sql"),
    ("000", 133): Row("inside", "migrations/functions/executions/finish_attempts.sql"),
    ("000", 158): Row("user", "test_sweeper_is_set_with_two_settings"),
    ("000", 179): Row("inside", REAP + " migrations/functions/processes/note_silence.sql"),
    ("000", 194): Row("user", "test_sweeper_is_set_with_two_settings"),
    ("000", 211): Row("user", "test_runner_id_and_runner_name_are_settings"),
    ("000", 218): Row("user", "test_log_lines_name_the_runner"),
    ("000", 232): Row("user", "test_routing_rules_of_the_scaling_document"),
    ("000", 259): Row("user", "test_workers_are_routed_as_boxes"),
    ("001", 130): Row("user", "test_workflow_has_one_state_row"),
    ("001", 172): Row("user", "test_enforcement_is_unique_by_rule_and_event"),
    ("002", 6): Row(
        "inside", "migrations/functions/workflows/make_workflows.sql common/penstock/engine/starts.py"
    ),
    ("002", 33): Row("user", "test_executor_config_has_its_defaults"),
    ("002", 46): Row("inside", "services/penstock_worker/executors/__init__.py"),
    ("002", 78): Row("inside", "common/penstock/run/deadlines.py"),
    ("002", 89): Row("inside", "common/penstock/engine/joins.py"),
    ("002", 110): Row("inside", CLAIM),
    ("002", 175): Row("inside", "common/penstock/language/policies/after_attempt.py"),
    ("002", 197): Row("user", "test_retry_policy_takes_its_five_options"),
    ("003", 35): Row("user", "test_daily_backup_is_a_schedule"),
    ("003", 50): Row("inside", FIRE),
    ("003", 91): Row("user", "test_schedules_and_fires_are_tables"),
    ("003", 102): Row("user", "test_schedules_and_fires_are_tables"),
    ("003", 114): Row("inside", FIRE + " " + SETTLE),
    ("003", 150): Row("user", "test_idempotent_backup_runs_as_written"),
    ("003", 166): Row(
        "inside",
        "migrations/functions/schedules/find_lost_fires.sql migrations/functions/schedules/recover_fires.sql",
    ),
    ("003", 222): Row("user", "test_missed_fires_have_three_policies"),
    ("003", 252): Row("user", "test_cron_fields_have_their_ranges"),
    ("003", 259): Row("user", "test_cron_expressions_are_taken"),
    ("003", 268): Row(
        "inside", "common/penstock/language/schedules/cron.py common/penstock/language/schedules/zones.py"
    ),
    ("003", 288): Row("user", "test_schedule_has_a_zone"),
    ("003", 307): Row("inside", "common/penstock/language/schedules/cron.py"),
    ("003", 330): Row("inside", FIRE),
    ("003", 358): Row("inside", "migrations/functions/executions/schedule_executions.sql"),
    ("003", 377): Row("inside", FIRE),
    ("003", 393): Row("user", "test_schedules_and_fires_have_narrow_indexes"),
    ("003", 397): Row("user", "test_schedules_and_fires_have_narrow_indexes"),
    ("003", 399): Row("user", "test_schedules_and_fires_have_narrow_indexes"),
    ("003", 402): Row("user", "test_cron_metrics_have_names_here"),
    ("003", 411): Row("inside", "common/penstock/store/schedules/figures.py"),
    ("003", 429): Row("user", "test_cron_health_has_its_thresholds"),
    ("003", 452): Row("user", "test_robust_backup_runs_as_written"),
    ("003", 469): Row("user", "test_bad_counter_runs_as_written"),
    ("003", 475): Row("user", "test_schedule_retries_with_growing_delays"),
    ("004", 37): Row(
        "inside", "services/penstock_worker/executors/__init__.py common/penstock/language/terms/routing.py"
    ),
    ("004", 48): Row("user", "test_custom_executor_has_the_four_methods"),
    ("004", 59): Row("user", "test_ready_event_has_its_fields_and_no_context"),
    ("004", 73): Row("user", "test_custom_executor_runs_and_counts"),
    ("004", 77): Row("user", "test_custom_executor_runs_and_counts"),
    ("004", 78): Row("user", "test_custom_executor_runs_and_counts"),
    ("004", 86): Row("user", "test_custom_executor_runs_and_counts"),
    ("004", 97): Row("user", "test_custom_executor_runs_and_counts"),
    ("004", 147): Row("user", "test_routing_rules_of_the_dispatcher_document"),
    ("004", 148): Row("user", "test_routing_rules_of_the_dispatcher_document"),
    ("004", 163): Row("user", "test_runner_with_a_gpu_route"),
    ("004", 164): Row("user", "test_runner_with_a_gpu_route"),
    ("004", 165): Row("user", "test_runner_with_a_gpu_route"),
    ("004", 217): Row("user", "test_kubernetes_executor_is_shipped"),
    **_drawings(("000", 20), ("000", 61), ("000", 144), ("000", 239), ("000", 269), ("000", 317)),
    **_drawings(("002", 4), ("002", 38), ("003", 8), ("003", 74), ("004", 3), ("004", 182)),
}

PYTHON: dict[tuple[str, int], str] = {
    ("003", 150): '''@cloaca.task(id="idempotent_backup")
def idempotent_backup(context):
    """Example of idempotent task design."""
    backup_date = context.get("backup_date")
    backup_id = f"backup_{backup_date}"
    # Check if backup already exists
    if backup_exists(backup_id):
        print(f"Backup {backup_id} already exists, skipping")
        context.set("backup_status", "already_exists")
        return context
    # Perform backup
    result = perform_backup(backup_id)
    context.set("backup_status", "created")
    context.set("backup_location", result.location)
    return context
''',
    ("003", 452): """@cloaca.task(id="robust_backup")
def robust_backup(context):
    backup_id = context.get("backup_id")
    try:
        # Check if already done
        if backup_exists(backup_id):
            return context
        # Perform backup
        result = create_backup(backup_id)
        context.set("backup_success", True)
        context.set("backup_location", result.path)
    except Exception as e:
        context.set("backup_success", False)
        context.set("error", str(e))
        # Don't re-raise - let cron handle retry policy
    return context
""",
    ("003", 469): """@cloaca.task(id="bad_counter")
def bad_counter(context):
    # This will cause issues if executed multiple times
    current = get_counter()
    set_counter(current + 1) # Race condition!
    return context
""",
}
"""The fragments in Python. The documents have lost the indentation; every other character is theirs."""

USES_OF_ROUTES: tuple[tuple[str, str], ...] = (
    ("ml::train", "gpu"),
    ("ml::predict", "gpu"),
    ("etl::extract", "default"),
    ("etl::batch::load", "k8s"),
    ("heavy_compute", "high_memory"),
)
"""Names of tasks of the scaling document, and where its three rules send them."""
