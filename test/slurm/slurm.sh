#!/usr/bin/env bash
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
#
# A SLURM of four nodes with accounting, on this machine alone: munge, MariaDB, slurmdbd, slurmctld and four slurmd, all below one folder and
# on loopback, whatever else runs here. It needs root, and of Debian slurm-wlm, slurmdbd, munge and mariadb-server.
#
#   slurm.sh start DIR [CLUSTER]   starts it and returns when four nodes are idle; DIR must be new. Then: export SLURM_CONF=DIR/slurm.conf
#   slurm.sh stop DIR              ends what start started
set -euo pipefail

packages="slurm-wlm slurmdbd munge mariadb-server"

die() {
	echo "slurm.sh: $*" >&2
	exit 1
}

# run NAME USER COMMAND...: a daemon that outlives this script, with its log and its process id in the folder.
run() {
	local name=$1 user=$2
	shift 2
	setsid setpriv --reuid "$user" --regid "$user" --init-groups "$@" >"$dir/log/$name" 2>&1 </dev/null &
	echo "$!" >>"$dir/pids"
}

# wait_for WHAT LOG COMMAND...: until the command succeeds, for a minute.
wait_for() {
	local what=$1 log=$2
	shift 2
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.2
	done
	tail -n 20 "$dir/log/$log" >&2
	die "$what does not start"
}

# free_ports N: N ports that nobody listens on.
free_ports() {
	python3 - "$1" <<-'EOF'
		import socket, sys
		held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
		print(*(s.getsockname()[1] for s in held))
	EOF
}

idle() { [[ $(sinfo -h -t idle -o %D) == 4 ]]; }

start() {
	[[ $EUID == 0 ]] || die "needs root, for munge and MariaDB run as users of their own"
	for tool in munged mariadbd mysql_install_db slurmdbd slurmctld slurmd sacctmgr python3; do
		command -v "$tool" >/dev/null || die "$tool is missing: apt-get install $packages"
	done
	mkdir -m 755 "$dir" "$dir/log" "$dir/state" "$dir/spool" "$dir/spool/"n{1,2,3,4}
	install -d -o munge -g munge -m 755 "$dir/munge"
	install -d -o mysql -g mysql -m 755 "$dir/mysql"
	read -r db dbd ctld n1 n2 n3 n4 < <(free_ports 7)
	local host password
	host=$(hostname -s) password=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')

	(umask 077 && head -c 128 /dev/urandom >"$dir/munge/key" && chown munge "$dir/munge/key")
	run munged munge munged --foreground --force --socket "$dir/munge/socket" --key-file "$dir/munge/key" --pid-file "$dir/munge/pid" \
		--seed-file "$dir/munge/seed" --log-file "$dir/munge/log"
	wait_for munge munged sh -c "munge -n -S '$dir/munge/socket' | unmunge -S '$dir/munge/socket'"

	mysql_install_db --no-defaults --user=mysql --datadir="$dir/mysql/data" >"$dir/log/mysql_install_db" 2>&1
	run mariadbd mysql mariadbd --no-defaults --datadir="$dir/mysql/data" --socket="$dir/mysql/socket" --pid-file="$dir/mysql/pid" \
		--bind-address=127.0.0.1 --port="$db" --innodb-buffer-pool-size=64M
	wait_for MariaDB mariadbd mysqladmin --no-defaults --socket="$dir/mysql/socket" ping
	mysql --no-defaults --socket="$dir/mysql/socket" <<-EOF
		CREATE DATABASE slurm_acct_db;
		CREATE USER slurm@localhost IDENTIFIED BY '$password';
		CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '$password';
		GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
		GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';
	EOF

	(umask 077 && cat >"$dir/slurmdbd.conf") <<-EOF
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		DbdHost=localhost
		DbdPort=$dbd
		SlurmUser=root
		StorageType=accounting_storage/mysql
		StorageHost=127.0.0.1
		StoragePort=$db
		StorageUser=slurm
		StoragePass=$password
		StorageLoc=slurm_acct_db
		PidFile=$dir/slurmdbd.pid
	EOF
	cat >"$dir/slurm.conf" <<-EOF
		ClusterName=$cluster
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$ctld
		SlurmUser=root
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool/%n
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.%n.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		MpiDefault=none
		ReturnToService=2
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		JobAcctGatherType=jobacct_gather/linux
		JobAcctGatherFrequency=1
		JobRequeue=1
		KillWait=5
		MinJobAge=600
		SchedulerParameters=sched_interval=1,batch_sched_delay=0
		AccountingStorageType=accounting_storage/slurmdbd
		AccountingStorageHost=localhost
		AccountingStoragePort=$dbd
		AccountingStoragePass=$dir/munge/socket
		NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n1 CPUs=2 RealMemory=1000
		NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n2 CPUs=2 RealMemory=1000
		NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n3 CPUs=2 RealMemory=1000
		NodeName=n4 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n4 CPUs=2 RealMemory=1000
		PartitionName=gpu Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
	EOF
	export SLURM_CONF=$dir/slurm.conf
	run slurmdbd root slurmdbd -D
	wait_for slurmdbd slurmdbd sacctmgr -n list cluster
	sacctmgr -i add cluster "$cluster" >"$dir/log/sacctmgr" 2>&1 || true # slurmctld adds it too, whoever is first
	run slurmctld root slurmctld -D
	for n in 1 2 3 4; do
		run "slurmd.n$n" root slurmd -D -N "n$n"
	done
	wait_for "a node" slurmctld idle
	echo "$SLURM_CONF"
}

stop() {
	[[ -e $dir/pids ]] || die "$dir: nothing was started there"
	local pids=() alive
	mapfile -t pids < <(tac "$dir/pids")
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	for _ in $(seq 100); do
		alive=
		for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && alive=1; done
		[[ $alive ]] || break
		sleep 0.1
	done
	for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	rm -f "$dir/pids"
}

[[ $# -ge 2 ]] || die "usage: slurm.sh start DIR [CLUSTER], or slurm.sh stop DIR"
dir=$2 cluster=${3:-test}
case $1 in
start) start ;;
stop) stop ;;
*) die "unknown command $1, must be start or stop" ;;
esac
