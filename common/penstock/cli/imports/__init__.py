"""The importers: projects of other systems become Penstock projects, with a list of the remaining work by hand. Not
here: the command `penstock import` itself (`cli/import_project.py`)."""
