#!/usr/bin/env bash
# A real Slurm of one node, for tests: `one_node.sh up BASE NCPU`, then `. BASE/env.sh`;
# `one_node.sh down BASE`. Needs munged, slurmctld and slurmd, and root; no systemd, no cgroups,
# no accounting database, and nothing outside BASE. More CPUs may be declared than there are.
set -Eeuo pipefail
export PATH="$PATH:/usr/sbin"
HERE=$(cd "$(dirname "$0")" && pwd)

configuration() {  # BASE NCPU PORT
  local host memory
  host=$(hostname -s)
  memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
  cat <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$3
SlurmdPort=$(($3 + 1))
AuthType=auth/munge
AuthInfo=socket=$1/munge/munge.sock
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.pid
SlurmctldLogFile=$1/log/slurmctld.log
SlurmdLogFile=$1/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=300
KillWait=5
UnkillableStepTimeout=600
NodeName=$host NodeAddr=127.0.0.1 CPUs=$2 RealMemory=$memory State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
}

up() {  # BASE NCPU
  local base=$1 port
  mkdir -p "$base"/{munge,state,spool,log}
  chmod 755 "$base" "$base/munge"
  head -c 128 /dev/urandom >"$base/munge/munge.key"
  chmod 400 "$base/munge/munge.key"
  # By force: the folders above BASE may be closed to others, and nobody else is to come in.
  munged --force --key-file="$base/munge/munge.key" --socket="$base/munge/munge.sock" \
    --pid-file="$base/munge/munged.pid" --log-file="$base/munge/munged.log" \
    --seed-file="$base/munge/munge.seed"
  port=$((20000 + RANDOM % 5000 * 2))  # so that two of these can run side by side
  configuration "$base" "$2" "$port" >"$base/slurm.conf"
  {
    echo "export SLURM_CONF='$base/slurm.conf'"
    echo "export PATH='$HERE/shim':\"\$PATH\""
  } >"$base/env.sh"
  export SLURM_CONF="$base/slurm.conf"
  slurmctld -c
  slurmd
  for _ in $(seq 60); do
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && return 0
    sleep 0.25
  done
  tail -n 20 "$base/log/slurmctld.log" "$base/log/slurmd.log" >&2
  return 1
}

down() {  # BASE
  local file pid
  export SLURM_CONF="$1/slurm.conf"
  squeue -h -o %A 2>/dev/null | sort -u | xargs -r scancel 2>/dev/null || true
  for file in slurmd slurmctld munge/munged; do
    pid=$(cat "$1/$file.pid" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 40); do kill -0 "$pid" 2>/dev/null || break; sleep 0.25; done
    kill -9 "$pid" 2>/dev/null || true
  done
}

base=$(realpath -m "${2:?usage: one_node.sh up BASE NCPU | down BASE}")
case $1 in
  up)
    trap 'down "$base"' ERR
    up "$base" "${3:-$(nproc)}"
    ;;
  down) down "$base" ;;
esac
