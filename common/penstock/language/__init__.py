"""What users write, and how it is checked: definitions, packs, workflows, schedules, expressions, schemas. No I/O but
reading the files that they are written in.

Not here: how a workflow moves on (`engine`), and how anything is stored (`store`).
"""
