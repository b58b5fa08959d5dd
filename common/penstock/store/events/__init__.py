"""Events, the rules that match them, and the polls that produce them.

Not here: the evaluation of rules.
"""
