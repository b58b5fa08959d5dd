"""The task executor that runs jobs on Kubernetes.

Not here: other clusters.
"""
