# Made by scripts/make_stubs.py.
# ruff: noqa
from .cluster import GpuClient as GpuClient
from .cluster import connect as connect
from .cluster import local_cluster as local_cluster
from .collections import argsort as argsort
from .collections import cumprod as cumprod
from .collections import cumsum as cumsum
from .collections import groupby as groupby
from .collections import histogram as histogram
from .collections import max as max
from .collections import min as min
from .collections import on_gpu as on_gpu
from .collections import prod as prod
from .collections import reduce as reduce
from .collections import scan as scan
from .collections import sort as sort
from .collections import sort_pairs as sort_pairs
from .collections import sum as sum
from .collections import to_host as to_host
from .collections import top_k as top_k
from .collections import unique as unique
from .worker import DeviceIdentity as DeviceIdentity
from .worker import GpuPlugin as GpuPlugin
from .worker import identities as identities
