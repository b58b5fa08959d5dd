"""The worker, which claims executions from its routes, runs them under a fence, and reports their outcomes."""
