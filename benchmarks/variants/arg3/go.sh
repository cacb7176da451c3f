# bash .gpu-kit/arg3/go.sh, in the repository's root, after . .gpu-kit/setup.sh: at most 60 s.
K=.gpu-kit/arg3; T=/tmp/arg3_out; mkdir -p $T /tmp/arg3_built /tmp/arg3_main
export XDG_RUNTIME_DIR=/tmp PYTHONUNBUFFERED=1 SITE=${PYTHONPATH%%:*}
S=$(date +%s)
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader 2>/dev/null
tar -xJf $K/built.tar.xz -C /tmp/arg3_built; tar -xJf $K/main.tar.xz -C /tmp/arg3_main
timeout -k 2 ${T1:-46} ${PY:-python3} $K/rounds.py ${S1:-43} ${OUT:-/tmp}/arg3.json main=/tmp/arg3_main built=/tmp/arg3_built "one_poll=/tmp/arg3_built:one poll" 2>&1; echo "== rounds done at $(( $(date +%s) - S )) s"
if [ -z "$SMALL" ]; then
  CUB=$(ls .gpu-kit/cub_peer_35 /tmp/cub_peer_35 2>/dev/null | head -1); [ -z "$CUB" ] && xz -dc .gpu-kit/v/cub_peer.xz > /tmp/cub_peer_35 && CUB=/tmp/cub_peer_35; chmod +x $CUB; CUB=$(realpath $CUB)
  (cd /tmp/arg3_built; PYTHONPATH=$SITE:/tmp/arg3_built timeout -k 1 13 python3 -W ignore benchmarks/peers/cases.py --cub $CUB --peers cub --n 2^24,2^20 --rounds 3 --cases "reduce, u32;reduce, f32;argmax, f32;argmax" --budget-s 10 --json $T/cases.json) 2>&1 | tail -32
fi
echo "== end at $(( $(date +%s) - S )) s"
