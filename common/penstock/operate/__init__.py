"""The questions and commands of operators to a live installation: why, check, repair, doctor, apply, access.

Not here: commands of the terminal (`cli`), the calls of programs (`client`), and statements (`store`).
"""
