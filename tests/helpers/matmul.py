"""Shapes of MatMul for tests: small ones, so that small matrices have several tiles."""

#: By name: options, and the tile, whose boundaries the sizes go around.
SHAPES = {
    "one stage": ({"tile_m": 16, "tile_n": 32, "tile_k": 8, "thread_m": 4, "thread_n": 4, "stages": 1}, (16, 32, 8)),
    "two stages": ({"tile_m": 32, "tile_n": 16, "tile_k": 4, "thread_m": 8, "thread_n": 4, "stages": 2, "unroll": 2},
                   (32, 16, 4)),
    # 40 jobs of reading for 16 invocations: the last of three rounds is half empty.
    "three rounds": ({"tile_m": 16, "tile_n": 64, "tile_k": 8, "thread_m": 8, "thread_n": 8, "stages": 2, "unroll": 4},
                     (16, 64, 8)),
    "default": ({}, (64, 64, 16)),
}  # fmt: skip
