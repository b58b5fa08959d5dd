"""What an operator asks of a live installation: why does this wait, is a promise broken, mend it, what is wrong, make
these definitions current.

Not here: commands of the terminal (`cli`), what programs do with executions (`client`), and any statement (`store`).
"""
