# Made by scripts/make_stubs.py.
# ruff: noqa
from .run import DeviceState as DeviceState
from .run import request_of as request_of
from .run import run_fleet as run_fleet
