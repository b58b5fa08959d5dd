"""The questions and commands of operators to a live installation: why, check, repair, doctor and apply.

Not here: commands of the terminal (`cli`), what programs do with executions (`client`), and any statement (`store`).
"""
