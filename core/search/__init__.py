"""Simulated annealing with compiled kernels: over sequences (`splice.py`) and over orders without recomputation (`order.py`)."""
