# bash .gpu-kit/bykey3/go.sh, in the repository's root, after . .gpu-kit/setup.sh: 60 s (ROUND_S).
K=.gpu-kit/bykey3; S=$(date +%s); T=${ROUND_S:-60}; OUT=${OUT:-/tmp}
rm -rf /tmp/bykey3_tree /tmp/bykey3; mkdir -p /tmp/bykey3_tree /tmp/bykey3; tar xJf $K/tree.tar.xz -C /tmp/bykey3_tree
export BYKEY_TREE=/tmp/bykey3_tree GRIDWISE_REQUIRE_GPU=1 XDG_RUNTIME_DIR=/tmp PYTHONPATH=/tmp/site:/tmp/bykey3_tree OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if [ -z "$SMOKE" ]; then export VK_LAYER_PATH=$PWD/$K VK_INSTANCE_LAYERS=VK_LAYER_pipestats; fi
N=${WORKERS:-14}; export BUDGET=${BUDGET:-$(( T - 5 ))}
for i in $(seq 0 $(( N - 1 ))); do
  PIPE_STATS=${VK_LAYER_PATH:+/tmp/bykey3/$i.stats} timeout $(( BUDGET + 3 )) python3 -W ignore $K/lab.py work $i $N /tmp/bykey3 > /tmp/bykey3/$i.log 2>&1 &
done; wait
for i in $(seq 0 $(( N - 1 ))); do if [ -s /tmp/bykey3/$i.log ]; then tail -n 2 /tmp/bykey3/$i.log | cut -c1-300; fi; done
python3 -W ignore $K/lab.py table /tmp/bykey3 $OUT/bykey3.json
echo "all: $(( $(date +%s) - S )) s"
