"""For tests of what others build on Penstock. See `executor_conformance` for task executors."""
