# bash .gpu-kit/look4/go.sh [SECONDS], in the repository's root, after . .gpu-kit/setup.sh: at most 42 s.
K=.gpu-kit/look4; S=$(date +%s); T=${1:-40}
export GRIDWISE_REQUIRE_GPU=1 XDG_RUNTIME_DIR=/tmp PYTHONPATH=/tmp/site:/tmp/look4_tree OUT=${OUT:-/tmp}
rm -rf /tmp/look4_tree; mkdir -p /tmp/look4_tree; tar xJf $K/tree.tar.xz -C /tmp/look4_tree
export VK_LAYER_PATH=$PWD/$K VK_INSTANCE_LAYERS=VK_LAYER_pipestats PIPE_STATS=/tmp/l4_probe.txt
cat > /tmp/l4_probe.py <<'P'
import numpy as np, gridwise_py as gw
x = np.arange(1 << 20, dtype=np.uint32); assert (gw.scan(x) == np.cumsum(x, dtype=np.uint32)).all()
d, y = gw.request_device(), gw.u32("x")
for log in (16, 18, 20, 22, 23, 24):
    s = gw.Scan(d, "u32"); s.execute(input=gw.asarray(np.ones(1 << log, np.uint32), d))
    p = s.execute(input=gw.asarray(np.ones(1 << log, np.uint32), d)).plan.parameters
    print(f"2^{log}: {p['workgroup_size']} x {p['vecs']}, {p['tiles']} tiles, window {p['look_back_window']}", end="; ", flush=True)
P
timeout 15 python3 -W ignore /tmp/l4_probe.py 2> /tmp/l4_probe.log || { echo "no layer:"; tail -3 /tmp/l4_probe.log; unset VK_LAYER_PATH VK_INSTANCE_LAYERS PIPE_STATS; }
echo "probed at $(( $(date +%s) - S )) s"
B=$(( T - $(date +%s) + S ))
timeout $(( B + 2 )) python3 -W ignore $K/lab.py $OUT/look4.json $B 2>&1 | tee $OUT/look4.txt
echo "all: $(( $(date +%s) - S )) s"
