"""What several primitives are made of: operators, look-back, streams, segments, radix passes, elementwise kernels.

One algorithm per file stands beside this folder. Nothing here imports one of them.
"""
