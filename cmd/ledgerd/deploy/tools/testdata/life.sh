#!/bin/bash
# The life of the package on a machine that runs systemd: installed, stopped and started, upgraded, removed, installed again,
# purged. It runs in a container that has the packages at /mnt/old.deb and /mnt/new.deb, and says in /mnt/said what it did.
set -Eeuxo pipefail
[ "$(stat --file-system --format %T /)" = overlayfs ] # what it installs and removes stays in memory
exec >/mnt/said/life 2>&1
trap 'journalctl --no-pager --unit ledgerd --lines 40' ERR
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
api=http://127.0.0.1:8080/api
mint=$api/account/HrnUbUaxx7WD9aRdHJRk5joPUKG1dZxmr1nEqqrgfE9R
new=$(dpkg-deb -f /mnt/new.deb Version)
node='' account='' slot=0 pid=''

serves() { # serves VERSION: the service is ready, runs as its user, and is the node that it was, with the ledger that it had
  systemctl is-enabled ledgerd
  curl -fsS --retry 30 --retry-delay 1 --retry-all-errors http://127.0.0.1:8081/readyz
  local status same
  status=$(curl -fsS $api/status | grep -F "\"version\":\"$1\"" | grep -o '"node_id":"[0-9a-f]*"')
  same=$(curl -fsS "$mint?min_slot=$slot")
  [ "$status" = "${node:=$status}" ]
  [ "$same" = "${account:=$same}" ]
  slot=$(curl -fsS -o /dev/null -w '%header{x-ledger-slot}' "$mint")
  pid=$(systemctl show --property MainPID --value ledgerd)
  [ "$(stat -c %U "/proc/$pid")" = ledgerd ]
}

# The root may be that of a machine in use: it holds the package already, or lets no package start a service.
dpkg --purge ledgerd || true
rm -f /usr/sbin/policy-rc.d

dpkg --install /mnt/old.deb
serves 0.0.1
[ "$(stat -c '%U %G %a' /var/lib/ledgerd)" = 'ledgerd ledgerd 750' ]
systemctl stop ledgerd
[ "$(systemctl show --property ExecMainStatus --value ledgerd)" = 0 ]
systemctl start ledgerd
serves 0.0.1
runuser -u ledgerd -- ledgerd snapshot list --config /etc/ledgerd/ledgerd.yaml | grep -F snapshot-
running=$pid
systemctl reload ledgerd
serves 0.0.1
[ "$pid" = "$running" ]

# What an administrator changed stays, and the new program runs without being asked to.
echo 'log-level: warn' >>/etc/ledgerd/ledgerd.yaml
dpkg --install /mnt/new.deb
serves "$new"
grep -x 'log-level: warn' /etc/ledgerd/ledgerd.yaml

dpkg --remove ledgerd
[ ! -e "/proc/$pid" ]
dpkg --install /mnt/new.deb
serves "$new"
grep -x 'log-level: warn' /etc/ledgerd/ledgerd.yaml

dpkg --purge ledgerd
[ ! -e "/proc/$pid" ]
[ -z "$(find /etc /lib/systemd /usr/bin /usr/share /var/lib -name 'ledgerd*')" ]
