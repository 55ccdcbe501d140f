"""Local search over what is kept and what is recomputed, with compiled kernels.

The state says for every value and every gap between two of its uses how long it stays, and whether it is held once it has been recomputed
(`space.py`). Given that, a stage can be evaluated on its own: which operations it must recompute, what that costs and how much memory it
takes. So a change of one gap touches only the stages that read the value in that gap, whatever the size of the graph, and annealing tries
tens of thousands of changes a second (`stage_kernels.py`). `local.py` is the way in and out.
"""
