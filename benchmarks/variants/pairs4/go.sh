. .gpu-kit/setup.sh
K=.gpu-kit/pairs4
mkdir -p /tmp/pairs4_tree && tar xJf $K/tree.tar.xz -C /tmp/pairs4_tree
export PYTHONPATH=/tmp/site:/tmp/pairs4_tree GRIDWISE_REQUIRE_GPU=1 XDG_RUNTIME_DIR=/tmp
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
D=/tmp/pairs4_run; rm -rf $D; mkdir -p $D
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader
CUB=$(ls .gpu-kit/cub_peer_35 .gpu-kit/v/cub_peer /tmp/cub_peer_35 /tmp/cub_peer 2>/dev/null | head -1)
if [ -n "$CUB" ]; then cp $CUB /tmp/pairs4_cub; elif [ -f .gpu-kit/v/cub_peer.xz ]; then xz -dc .gpu-kit/v/cub_peer.xz > /tmp/pairs4_cub; else echo "no CUB peer"; fi
chmod +x /tmp/pairs4_cub
export T0=$(date +%s) T_COMPILE=${T_COMPILE:-21} T_ROUNDS=${T_ROUNDS:-33} T_END=${T_END:-41}
export VK_LAYER_PATH=$PWD/$K VK_INSTANCE_LAYERS=VK_LAYER_pipestats
W=$(python3 $K/lab.py workers)
for i in $(seq 0 $(( W - 1 ))); do
  PIPE_STATS=$D/$i.stats timeout $(( T_END + 3 )) python3 -W ignore $K/lab.py work $i $D > $D/$i.log 2>&1 &
done
timeout $(( T_END + 2 )) python3 -W ignore $K/lab.py cub $D /tmp/pairs4_cub > $D/cub.log 2>&1 &
wait
head -qn 1 $D/$(( W - 1 )).stats $D/0.stats; tail -n 2 $D/cub.log
cat $D/*.log | grep -v "made" | grep -v "^worker" | cut -c1-300 | head -50
timeout 20 python3 -W ignore $K/lab.py show $D $OUT/pairs4.json 2>&1 | tee $OUT/pairs4.txt
echo "$(( $(date +%s) - T0 )) s"
