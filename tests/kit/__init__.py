"""The tools that tests of several folders share."""
