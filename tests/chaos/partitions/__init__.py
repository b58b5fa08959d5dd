"""Every part of an installation is parted from every other one under load, in turn, and the accounts are settled."""
