"""The tools with which tests of several folders break things."""
