#!/bin/sh
# Installs the Debian packages that cozydev needs and this machine lacks, and
# checks for Go. It looks for commands, not for packages, so that a runc or a
# git that came another way is left alone (Docker's containerd.io package
# conflicts with Debian's runc, for one). When nothing is missing it calls
# nothing and changes nothing.
set -eu

go_minor=26
sbin=${SBIN-/usr/sbin} # not in everybody's PATH

have() { command -v "$1" >/dev/null 2>&1 || [ -x "$sbin/$1" ]; }
die() {
	printf 'error: %s\n' "$1" >&2
	shift
	for line; do printf '       %s\n' "$line" >&2; done
	exit 1
}

# What each is for:
#   runc                 starts containers for containerd
#   nft, iptables        kube-proxy's two ways to program Services; host ports of pods
#   mount                kubelet's and containerd's volumes
#   git, make            the checkout and its targets
#   the certificates     TLS to release servers and registries
missing=
for pair in runc:runc nft:nftables iptables:iptables mount:mount git:git make:make; do
	have "${pair%%:*}" || missing="$missing ${pair#*:}"
done
[ -s "${CERTIFICATES-/etc/ssl/certs/ca-certificates.crt}" ] || missing="$missing ca-certificates"
missing=${missing# }

if [ -n "$missing" ]; then
	have apt-get || die "this machine lacks $missing, and has no apt-get" \
		"install them with its own package manager, then run this again"
	[ "$(id -u)" = 0 ] || die "this machine lacks $missing, and only root may install them" \
		"run: sudo apt-get install --no-install-recommends $missing"
	echo "installing Debian packages: $missing"
	export DEBIAN_FRONTEND=noninteractive
	# Package lists may be absent or stale; they are fetched only if need be.
	# shellcheck disable=SC2086 # one word per package
	apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
		apt-get update -q >/dev/null || die "fetching the package lists" "check the network and /etc/apt/sources.list"
		apt-get install -y -q --no-install-recommends $missing >/dev/null ||
			die "installing $missing" "run: apt-get install $missing, and see what it says"
	}
fi

how="get Go 1.$go_minor or later from https://go.dev/dl/, unpack it to /usr/local and put /usr/local/go/bin in PATH"
have go || die "Go is missing; Debian's own is too old to build cozydev" "$how"
version=$(go env GOVERSION) || die "go does not run" "$how"
case $version in
go1.*)
	minor=${version#go1.}
	minor=${minor%%[!0-9]*}
	[ "$minor" -ge "$go_minor" ] || die "$version is too old to build cozydev" "$how"
	;;
esac
