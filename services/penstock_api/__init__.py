"""The HTTP API: what the command line can do, for programs and pages."""
