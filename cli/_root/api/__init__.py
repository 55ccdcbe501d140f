"""The implementation of the public API: `graph` (loaded graphs), `pricing` (costs and problems), `training` (differentiate), `solving`,
`result`, `schedule_file`, `smallest` (smallest budget), `largest` (largest batch), `explaining`, `profiling`, `verifying`.

The command line uses these modules and nothing below them. The package `checkmate` exports the public names.
"""
