# bash .gpu-kit/grid3/go.sh [SECONDS], in the repository's root, after . .gpu-kit/setup.sh: at most 62 s.
K=.gpu-kit/grid3; S=$(date +%s); T=${1:-60}
export GRIDWISE_REQUIRE_GPU=1 XDG_RUNTIME_DIR=/tmp PYTHONPATH=/tmp/site:/tmp/grid3_tree OUT=${OUT:-/tmp}
rm -rf /tmp/grid3_tree; mkdir -p /tmp/grid3_tree; tar xJf $K/tree.tar.xz -C /tmp/grid3_tree
export VK_LAYER_PATH=$PWD/.gpu-kit/pairs2 VK_INSTANCE_LAYERS=VK_LAYER_pipestats PIPE_STATS=/tmp/g3_probe.txt
timeout 15 python3 -W ignore -c "import numpy as np, gridwise_py as gw; x = np.arange(100000, dtype=np.uint32); assert (gw.scan(x) == np.cumsum(x, dtype=np.uint32)).all()" > /tmp/g3_probe.log 2>&1 || { echo "no layer:"; tail -3 /tmp/g3_probe.log; unset VK_LAYER_PATH VK_INSTANCE_LAYERS PIPE_STATS; }
echo "probed at $(( $(date +%s) - S )) s"
B=$(( T - $(date +%s) + S - 2 ))
timeout $(( B + 3 )) python3 -W ignore $K/lab.py $OUT/grid3.json $B 2>&1 | tee $OUT/grid3.txt
echo "all: $(( $(date +%s) - S )) s"
