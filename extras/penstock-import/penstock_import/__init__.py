"""The commands `penstock import`, which turn the definitions of another system into a project."""
