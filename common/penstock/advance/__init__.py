"""The consequences of ended executions (`ends`): their workflows advance, and their callbacks start. `turns` is the
main path: it opens locked workflows (`open_workflows`), reads the facts that the engine asks for (`read_facts`), lets
the engine decide (`penstock.engine`), and writes the decision (`write`).

Not here: the decisions, which the engine makes; and statements, which are in `penstock.store.workflows`.
"""
