"""The HTTP API, with the functions of the command line for programs and pages."""
