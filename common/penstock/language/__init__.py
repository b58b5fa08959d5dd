"""The language of users and its checks: definitions, packs, workflows, schedules, expressions, schemas; and the terms
that every room above uses, such as ids, statuses and their moves, and labels. The only I/O is reading the files of
definitions.

Not here: how a workflow moves on (`engine`), and how anything is stored (`store`).
"""
