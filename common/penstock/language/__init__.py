"""The language of users and its checks: definitions, packs, workflows, schedules, expressions, schemas; and the terms
that every room above uses: ids, statuses and their moves, labels. No I/O but reading the files that definitions are
written in.

Not here: how a workflow moves on (`engine`), and how anything is stored (`store`).
"""
