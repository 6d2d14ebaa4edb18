#!/bin/sh
# Runs the micro benchmarks of another revision and of this tree in turns, so that both have the
# same machine, and compares them.
#   bench/compare.sh REF [PACKAGE…]
# COUNT is how many turns there are (10), BENCH which benchmarks (all), BENCHTIME how long each (1s).
set -eu
ref=${1:?usage: bench/compare.sh REF [PACKAGE…]}
shift
[ $# -gt 0 ] || set -- ./...
cd "$(git rev-parse --show-toplevel)"
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/old" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
git worktree add --quiet --detach "$dir/old" "$ref"

# Only packages with benchmarks are built, in both trees, before anything is measured.
build() { # TREE NAME PACKAGE…
	tree=$1 name=$2
	shift 2
	mkdir "$dir/$name.bin"
	(cd "$tree" && go list -f '{{.ImportPath}} {{.Dir}}' "$@") |
		while read -r package home; do
			grep -qs '^func Benchmark' "$home"/*_test.go || continue
			program=$dir/$name.bin/$(echo "$package" | tr / _)
			echo "building $package, $name" >&2
			(cd "$tree" && go test -c -o "$program" "$package")
			echo "$program $home" >>"$dir/$name.list"
		done
	[ -s "$dir/$name.list" ] || { echo "no benchmarks in $tree" >&2; exit 1; }
}
measure() { # NAME
	while read -r program home; do
		(cd "$home" && "$program" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchtime "${BENCHTIME:-1s}" -test.benchmem) >>"$dir/$1.txt"
	done <"$dir/$1.list"
}
build "$dir/old" old "$@"
build . new "$@"
turn=1
while [ "$turn" -le "${COUNT:-10}" ]; do
	echo "turn $turn of ${COUNT:-10}" >&2
	measure old
	measure new
	turn=$((turn + 1))
done
go tool benchstat "$ref=$dir/old.txt" "this tree=$dir/new.txt"
