#!/usr/bin/env bash
# Prints the manual page of a program: its own help, that of each of its commands, and what else stands beside this script in PROGRAM.1.
set -euo pipefail
program=$1
name=$(basename "$program")
plain() { sed 's/\\/\\e/g; s/-/\\-/g; s/^[.'\'']/\\\&&/'; }
help=$("$program" --help)

printf '.TH %s 1 "" "%s"\n.SH NAME\n%s \\- ' "${name^^}" "$("$program" --version | cut -d' ' -f1,2)" "$name"
# The paragraph after the line of usage, up to its first stop or colon.
awk 'NR > 2 { if (!$0) exit; print }' <<<"$help" | tr '\n' ' ' | sed 's/[.:].*//' | plain
printf '\n.SH SYNOPSIS\n.nf\n'
sed -n 's/^Usage: //p' <<<"$help" | plain
printf '.fi\n.SH DESCRIPTION\n.nf\n'
tail -n +3 <<<"$help" | plain
echo .fi
sed -n '/^Commands:/,$s/^  \([a-z][a-z ]*[a-z]\)\(  .*\|$\)/\1/p' <<<"$help" | while read -r command; do
  printf '.SH %s\n.nf\n' "${command^^}"
  # shellcheck disable=SC2086 # a command may be two words
  "$program" $command --help | plain
  echo .fi
done
rest=$(dirname "$0")/$name.1
[ ! -e "$rest" ] || cat "$rest"
