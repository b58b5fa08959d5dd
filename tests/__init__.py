"""The tests. A package, so that `tests.servers` is ours even where a library ships a `tests` of its own."""
