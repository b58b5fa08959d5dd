"""The worker: claims executions from its routes, runs them under a fence, and reports what came of them."""
