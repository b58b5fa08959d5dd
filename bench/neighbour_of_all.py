"""The action that every worker of `bench.neighbours` has."""

from penstock import action


@action(pack="neighbours")
async def of_all(index: int) -> int:
    return index
