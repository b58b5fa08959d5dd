"""The task executors on clusters of Dask and Ray.

Not here: Kubernetes.
"""
