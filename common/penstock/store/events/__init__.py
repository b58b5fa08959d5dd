"""Events, the rules that match them, and the polls that bring them.

Not here: the evaluation of rules.
"""
