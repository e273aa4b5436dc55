#!/bin/sh
# Install what `make test` needs and pip cannot bring: Chromium (the report is opened in it), PostgreSQL (Optuna's
# workers share a study in it), a C compiler (one example is written in C) and Python's venv module.
# Where that is not possible, this says so in a sentence and ends well: the tests in need of a program are skipped.

packages=
command -v chromium > /dev/null || packages="$packages chromium"
command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || packages="$packages postgresql"
command -v cc > /dev/null || packages="$packages gcc libc6-dev"
"${PYTHON:-python3}" -c "import ensurepip, venv" 2> /dev/null || packages="$packages python3-venv"
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2> /dev/null; then
    as_root="sudo -n"
else
    as_root=nobody
fi
if [ "$as_root" = nobody ] || ! command -v apt-get > /dev/null; then
    echo "Not installed, because that takes root and apt-get:$packages. The tests that need them are skipped."
    exit 0
fi

$as_root apt-get update -q
for package in $packages; do # one by one, so that one that cannot be had does not keep the others out
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" ||
        echo "$package could not be installed. The tests that need it are skipped."
done
