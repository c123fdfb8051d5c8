"""The only code that runs inside the processes of vLLM.

This folder is what `rtopt overlay-path` prints: put on PYTHONPATH it offers the package
`rtopt_overlay` and, beside it, the metadata that names its entry points in vLLM's plug-in groups.
Installing rtopt registers none of them.
"""
