"""PyTorch programs in files (`.pt2`): read without running anything in them, traced, run in a process of their own, and written."""
