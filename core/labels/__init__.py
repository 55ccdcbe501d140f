"""Label-setting dynamic programming over needed-sets: what the end of a schedule costs, by what is in memory when it begins."""
