#!/bin/sh
# Install what `make test` needs and pip cannot bring: Chromium (the report is opened in it), PostgreSQL (Optuna's
# workers share a study in it), compilers (one example is written in C, and some packages have no wheel for every
# Python), and the parts of Python that Debian packs apart.
# Where that is not possible, this says so in a sentence and ends well: the tests in need of a program are skipped.

packages=
command -v chromium > /dev/null || packages="$packages chromium"
command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || packages="$packages postgresql"
{ command -v cc && command -v c++; } > /dev/null || packages="$packages g++"
python=${PYTHON:-python3}
"$python" -c "import ensurepip, venv" 2> /dev/null || packages="$packages python3-venv"
headers=$("$python" -c "import sysconfig; print(sysconfig.get_path('include'))" 2> /dev/null)
[ -e "$headers/Python.h" ] || packages="$packages python3-dev"
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
