#!/bin/sh
# Installs the packages of packages.txt that are missing. Asks for no password: needs root, or sudo that works without one.
set -eu
cd "$(dirname "$0")/.."
missing=""
for package in $(sed -e 's/#.*//' packages.txt); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "Installing:$missing"
if [ "$(id -u)" -eq 0 ]; then as_root=""; elif command -v sudo >/dev/null; then as_root="sudo"; else
    echo "setup: these packages are missing and this is not root; install them with: apt-get install$missing" >&2
    exit 4
fi
# shellcheck disable=SC2086
$as_root apt-get update -q
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
