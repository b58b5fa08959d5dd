"""The HTTP API. Programs and pages have the functions of the command line."""
