"""Tasks of these tests run in a random order: the subject is what waits in several places at once."""

from tests.shuffled_tasks import shuffled_tasks

__all__ = ["shuffled_tasks"]
