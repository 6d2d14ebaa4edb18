#!/usr/bin/env bash
# Makes a release in DIRECTORY, which is emptied: static programs in archives, Debian packages, container images, what they are made of
# (CycloneDX), and the checksums of all. The same commit and the same Go give the same bytes, in any place.
#
#   release.sh DIRECTORY [ARCHITECTURE...]      amd64 and arm64, if none is named
#
# VERSION names another version than the sources do. REVISION and SOURCE_DATE_EPOCH say what git says of the last commit.
set -euo pipefail
umask 022
export LC_ALL=C
release=$(realpath -m "$1")
architectures=("${@:2}")
[ ${#architectures[@]} -gt 0 ] || architectures=(amd64 arm64)
cd "$(dirname "$0")/../../.."
deploy=cmd/ledgerd/deploy
export VERSION=${VERSION:-$(sed -n 's/^var Version = "\(.*\)"$/\1/p' cmd/internal/build/build.go)}
[[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "release.sh: a version is N.N.N, not '$VERSION'" >&2; exit 2; }
revision=${REVISION:-$(git describe --always --exclude '*' --abbrev=40 --dirty=+dirty)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
programs=(ledgerd ledgerbench ledgercluster)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # build ARCHITECTURE
  CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -buildvcs=false -o "$work/$1/" \
    -ldflags "-s -w -X ledgerd/cmd/internal/build.Version=$VERSION -X ledgerd/cmd/internal/build.stamped=$revision" "${programs[@]/#/./cmd/}"
}

tool() { # tool NAME: where the go command keeps a tool that the module beside this script pins
  CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' go tool -C $deploy/tools -n "$1"
}

pack() { # pack DIRECTORY NAME...: an archive of files that shows nothing of who made it, when, and where
  tar --create --directory "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "${@:2}"
}

notices() { # the licenses of all that the programs are made of: modules, Go itself, and what the console brings for browsers
  local name from files
  {
    echo "go $(go env GOROOT)"
    GOOS=linux go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}' "${programs[@]/#/./cmd/}" | sort -u
    find httpd/console -name node_modules -prune -o -type f -name '*.LICENSE*' -printf '%f %p\n' | sort
  } | while read -r name from; do
    mapfile -t files < <(find "$from" -maxdepth 1 -type f \( -iname '*licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
    [ ${#files[@]} -gt 0 ] || { echo "release.sh: $name has no license" >&2; exit 1; }
    printf -- '---- %s ----\n\n' "$name"
    cat "${files[@]}"
    echo
  done
}

# What is the same for all architectures.
nfpm=$(tool nfpm)
cyclonedx=$(tool cyclonedx-gomod)
image=$(tool image)
common=$work/common
mkdir -p "$common"/{man,monitoring}
notices >"$common/NOTICES"
host=$(go env GOHOSTARCH)
build "$host"
for program in "${programs[@]}"; do
  $deploy/man.sh "$work/$host/$program" >"$common/man/$program.1"
done
cp LICENSE README.md $deploy/ledgerd.service $deploy/ledgerd.yaml "$common"
cp -r $deploy/{prometheus.yml,alerts.yml,grafana} "$common/monitoring"

rm -rf "$release"
mkdir -p "$release"
for arch in "${architectures[@]}"; do
  [ "$arch" = "$host" ] || build "$arch"
  name=ledgerd_${VERSION}_linux_$arch
  for program in "${programs[@]}"; do
    "$cyclonedx" bin -json -std -noserial -notimestamp -version "v$VERSION" \
      -output "$release/${program}_${VERSION}_linux_$arch.cdx.json" "$work/$arch/$program" 2>/dev/null
  done

  mkdir "$work/$name"
  cp -r "$common/." "${programs[@]/#/$work/$arch/}" "$work/$name"
  pack "$work" "$name" | gzip -n >"$release/$name.tar.gz"

  debian=$work/debian-$arch
  cp -r "$work/$name" "$debian"
  cp $deploy/{nfpm.yaml,copyright,lintian-overrides,postinst,prerm,postrm} "$debian"
  sed 's|^#data-dir: .*|# Another source needs another one; the service writes below /var/lib/ledgerd alone.\ndata-dir: /var/lib/ledgerd/data|' $deploy/ledgerd.yaml >"$debian/packaged.yaml"
  printf 'ledgerd (%s) stable; urgency=medium\n\n  * Revision %s.\n\n -- %s  %s\n' "$VERSION" "$revision" \
    "$(sed -n 's/^maintainer: //p' $deploy/nfpm.yaml)" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" >"$debian/changelog"
  gzip -9n "$debian"/{changelog,NOTICES,man/*}
  (cd "$debian" && ARCH=$arch "$nfpm" package --packager deb --target "$release/ledgerd_${VERSION}_$arch.deb") >/dev/null

  "$image" "$work/$arch/ledgerd" LICENSE "$arch" "$VERSION" "$SOURCE_DATE_EPOCH" "$release/$name.image.tar"
done
cd "$release"
sha256sum -- * >SHA256SUMS
