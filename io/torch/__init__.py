"""Everything that touches PyTorch.

`internals` holds every private name of torch that is used, and says which versions work. `traced` reads a traced graph into ours (`roles`,
`storages`, `pinning`, `boundary`), `rewriting` writes a schedule back as a traced graph, `operation_costs` measures. `archive` and
`program` read and write `.pt2` files.
"""
