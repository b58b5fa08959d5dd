"""What users write, and how it is checked: definitions, packs, workflows, schedules, expressions, schemas; and what every room
above calls things by: ids, statuses and their moves, labels. No I/O but reading the files that definitions are written in.

Not here: how a workflow moves on (`engine`), and how anything is stored (`store`).
"""
