#!/usr/bin/env bash
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# e2e.sh [NAME...]: tests the built binary against the real counterparts of test/e2e/NAME, all of them by default.
#
# Where a folder has a script NAME.sh, that gets the counterpart, once, and prints what the tests must know as lines NAME=VALUE. Where it
# exits with 3, this machine cannot have the counterpart, the script has said why, and the folder is skipped.
set -euo pipefail
cd "$(dirname "$0")"

names=("$@")
if ((!$#)); then
	for tests in */*_test.go; do
		[[ $tests == oracle/* ]] || names+=("${tests%%/*}")
	done
	readarray -t names < <(printf '%s\n' "${names[@]}" | sort -u)
fi

run=() skipped=()
for name in "${names[@]}"; do
	[[ -x $name/$name.sh ]] || { run+=("./$name") && continue; }
	status=0
	found=$("$name/$name.sh") || status=$?
	case $status in
	0)
		run+=("./$name")
		while read -r line; do
			[[ -z $line ]] || { echo "e2e/$name: found $line" && export "${line?}"; }
		done <<<"$found"
		;;
	3) skipped+=("$name") && echo "e2e/$name: SKIPPED, the reason stands above" ;;
	*) echo "e2e/$name: its script failed" >&2 && exit "$status" ;;
	esac
done

((!${#run[@]})) || go test -tags slow -count=1 -timeout 30m -v "${run[@]}"
((!${#skipped[@]})) || echo "e2e: skipped ${skipped[*]}"
