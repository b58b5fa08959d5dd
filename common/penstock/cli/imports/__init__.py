"""`penstock import`: projects of other systems as projects of ours, and a list of what is left to do by hand.

Not here: the command itself (`cli/import_project.py`).
"""
