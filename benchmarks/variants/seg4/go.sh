# bash .gpu-kit/seg4/go.sh, in the root of main, after . .gpu-kit/setup.sh: about 42 s. Writes $OUT/seg4.json, prints two tables.
K=$PWD/.gpu-kit/seg4; T=${TMPDIR:-/tmp}/seg4_out; rm -rf $T; mkdir -p $T/new
cp -r gridwise_py shaders $T/new/; tar xJf $K/tree.tar.xz -C $T/new
export XDG_RUNTIME_DIR=/tmp PYTHONUNBUFFERED=1 GRIDWISE_REQUIRE_GPU=1 NEW_TREE=$T/new MAIN_TREE=${MAIN_TREE:-$PWD} START=$(date +%s.%N) SECONDS_ALL=${SECONDS_ALL:-38} TURNS_S=${TURNS_S:-18}
SITE=${PYTHONPATH%%:*}; S=$(date +%s); PY=${PY:-python3}
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader 2>/dev/null
if [ -z "$SMALL" ]; then export VK_LAYER_PATH=$K VK_INSTANCE_LAYERS=VK_LAYER_pipestats
PYTHONPATH=$SITE:$PWD timeout 45 $PY -W ignore -c "
import time, gridwise_py as gw
with gw.hold_clock(gw.request_device()) as held: print('clock held', held, flush=True); time.sleep(42)" > $T/clock.txt 2>&1 & CLOCK=$!; fi
export WORKERS=$(PYTHONPATH=$K $PY -c "from variants import PROCESSES; print(len(PROCESSES))")
PIDS=
for i in $(seq 0 $((WORKERS - 1))); do
  st=; [ -z "$SMALL" ] && st=$T/stats$i.txt
  PIPE_STATS=$st PYTHONPATH=$SITE:$K timeout -k 1 ${EACH:-42} $PY -W ignore $K/bench.py $i $T > $T/w$i.txt 2> $T/e$i.txt & PIDS="$PIDS $!"
done
wait $PIDS
[ -n "$CLOCK" ] && kill $CLOCK
cat $T/clock.txt 2>/dev/null; for e in $T/e*.txt; do [ -s $e ] && { echo "-- $e"; tail -c 400 $e; }; done
PYTHONPATH=$K $PY $K/show.py $T ${OUT:-/tmp}/seg4.json
echo "== end at $(( $(date +%s) - S )) s"
