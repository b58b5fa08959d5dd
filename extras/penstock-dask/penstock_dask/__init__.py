"""The task executor of Penstock that runs functions on a Dask cluster."""
