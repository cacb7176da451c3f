# bash benchmarks/variants/states5/go.sh, in the repository's root, after . .gpu-kit/setup.sh: 60 s (ROUND_S).
K=benchmarks/variants/states5; S=$(date +%s); T=${ROUND_S:-60}; OUT=${OUT:-/tmp}; D=/tmp/fin_run
rm -rf /tmp/fin_tree $D; mkdir -p /tmp/fin_tree $D; tar xJf $K/tree.tar.xz -C /tmp/fin_tree
export FIN_TREE=/tmp/fin_tree GRIDWISE_REQUIRE_GPU=1 XDG_RUNTIME_DIR=/tmp OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
if [ -z "$SMOKE" ]; then export PYTHONPATH=/tmp/site:/tmp/fin_tree VK_LAYER_PATH=$PWD/.gpu-kit/layer VK_INSTANCE_LAYERS=VK_LAYER_pipestats; else export PYTHONPATH=/tmp/fin_tree; unset GRIDWISE_REQUIRE_GPU; fi
N=${WORKERS:-14}; export BUDGET=${BUDGET:-$(( T - 5 ))}
${PYTHON:-python3} $K/lab.py data $D > $D/data.log 2>&1 &
for i in $(seq 0 $(( N - 1 ))); do
  PIPE_STATS=${VK_LAYER_PATH:+$D/$i.stats} timeout $(( BUDGET + 3 )) ${PYTHON:-python3} -W ignore $K/lab.py work $i $N $D > $D/$i.log 2>&1 &
done; wait
for i in $(seq 0 $(( N - 1 ))); do if [ -s $D/$i.log ]; then tail -n 2 $D/$i.log | cut -c1-300; fi; done
${PYTHON:-python3} -W ignore $K/lab.py table $D $OUT/fin.json | tee $OUT/fin.txt
cat $D/*.jsonl > $OUT/fin.jsonl
echo "all: $(( $(date +%s) - S )) s"
