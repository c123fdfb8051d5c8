"""Adds the top-level folders levers/ and traces/ as packages of rtopt; the rest is declarative."""

from setuptools import find_packages, setup

FOLDERS = {"rtopt.levers": "levers", "rtopt.traces": "traces"}

setup(packages=[*find_packages(include=["rtopt", "rtopt.*"]), *FOLDERS], package_dir=FOLDERS)
