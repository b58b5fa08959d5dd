"""What tests of several folders break things with."""
